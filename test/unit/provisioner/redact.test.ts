import { expect, it, test } from 'vitest';
import { redact } from '#src/browsers/redact.ts';

test.each([
  [
    'DevTools listening on ws://127.0.0.1:9222/devtools/browser/1f3a-77',
    'DevTools listening on ws://127.0.0.1:9222/devtools/browser/…',
  ],
  ['GET https://ann:hunter2@shop.example/a', 'GET https://…@shop.example/a'],
  ['at https://shop.example/pay?card=4111&t=1: 500', 'at https://shop.example/pay?… 500'],
  ['authorization: Bearer abc.def-1', 'authorization: … …'],
  ['password=Ab3dEf9h rest', 'password=… rest'],
  ['used bss_dev_Kx-1', 'used bss_…'],
  ['cannot open display :7', 'cannot open display :7'],
])('%s', (said, kept) => {
  expect(redact(said)).toBe(kept);
});

it('removes the given secrets', () => {
  expect(redact('vncpasswd: v8Xq2LmP too short', ['v8Xq2LmP', ''])).toBe('vncpasswd: … too short');
});
