import { expect, test } from 'vitest';
import { createMasterKeys, findMasterKey, parseMasterKeys } from '#src/kernel/master-keys.ts';

test('the first key is current, and each is found by its id', () => {
  const [first, second] = ['1'.repeat(32), '2'.repeat(32)];
  const keys = parseMasterKeys(`${first}\n${second}\n`);
  expect(Buffer.from(keys.current.bytes).toString()).toBe(first);
  expect(keys.all.map(({ id }) => findMasterKey(keys, id)?.bytes)).toEqual(
    keys.all.map(({ bytes }) => bytes),
  );
  expect(findMasterKey(keys, Buffer.alloc(8))).toBeUndefined();
});

test('a key has the same id in each process, and its id is no part of it', () => {
  const [one, other] = ['1'.repeat(32), `2${'1'.repeat(31)}`].map((text) => parseMasterKeys(text));
  expect(one?.current.id).toEqual(parseMasterKeys('1'.repeat(32)).current.id);
  expect(one?.current.id).not.toEqual(other?.current.id);
});

test.each([
  ['none', []],
  ['a short one', ['short']],
  ['one twice', ['1'.repeat(32), '2'.repeat(32), '1'.repeat(32)]],
  ['six', Array.from({ length: 6 }, (_, n) => `${n}`.repeat(32))],
])('%s is refused', (_, keys) => {
  expect(() => createMasterKeys(keys.map((key) => Buffer.from(key)))).toThrow(RangeError);
});
