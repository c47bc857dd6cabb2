import { expect, test } from 'vitest';
import { formatSize, refusedOf } from '#src/apps/dashboard/session/files/session-files.ts';
import type { HistoryEvent } from '#src/apps/dashboard/session/history.ts';

test.for([
  [0, '0 bytes'],
  [999, '999 bytes'],
  [1_000, '1.0 kB'],
  [48_213, '48.2 kB'],
  [999_400, '999 kB'],
  [999_500, '1.0 MB'],
  [200_000_000, '200 MB'],
  [1_500_000_000, '1.5 GB'],
] as const)('%d is %s', ([bytes, text]) => {
  expect(formatSize(bytes)).toBe(text);
});

test('what was refused comes newest first, with the reason', () => {
  const at = (sequence: number, type: string, data: object) =>
    ({ sequence, type, data, time: `2026-11-25T10:00:0${sequence}.000Z` }) as HistoryEvent;
  const events = [
    at(1, 'session.file-refused', { name: 'a.iso', reason: 'too_large' }),
    at(2, 'session.file-added', { name: 'b.txt' }),
    at(3, 'session.file-refused', { name: 'c.txt', reason: 'of another version' }),
  ];
  expect(refusedOf(events)).toEqual([
    { sequence: 3, time: '2026-11-25T10:00:03.000Z', name: 'c.txt', why: 'of another version' },
    {
      sequence: 1,
      time: '2026-11-25T10:00:01.000Z',
      name: 'a.iso',
      why: 'larger than a file may be',
    },
  ]);
});
