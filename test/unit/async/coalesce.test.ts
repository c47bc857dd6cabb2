import { expect, test } from 'vitest';
import { coalesce } from '#src/kernel/async/coalesce.ts';

test('requests share a call that begins after them; another key has its own', async () => {
  const calls: { key: string; end: (result: string) => void; fail: (error: Error) => void }[] = [];
  const ask = coalesce((key) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    calls.push({ key, end: resolve, fail: reject });
    return promise;
  });
  const first = ask('a');
  const later = Array.from({ length: 20 }, () => ask('a'));
  const other = ask('b');
  expect(calls.map(({ key }) => key)).toEqual(['a', 'b']);
  calls[0]?.fail(new Error('the first alone'));
  await expect(first).rejects.toThrow('the first alone');
  await new Promise(setImmediate);
  expect(calls.map(({ key }) => key)).toEqual(['a', 'b', 'a']);
  calls[2]?.end('second');
  expect(new Set(await Promise.all(later))).toEqual(new Set(['second']));
  const after = ask('a');
  expect(calls).toHaveLength(4);
  calls[3]?.end('third');
  calls[1]?.end('other');
  expect(await Promise.all([after, other])).toEqual(['third', 'other']);
});
