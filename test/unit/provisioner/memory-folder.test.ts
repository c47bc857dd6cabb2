import { expect, test } from 'vitest';
import { inMemory } from '#src/browsers/process/programs.ts';

/** Where the files of process browsers go, unless TMPDIR says it. */

test('a folder in memory with enough room is used', () => {
  expect(inMemory('/dev/shm', 0)).toBe('/dev/shm');
});

test.each([
  ['without enough room', '/dev/shm', 2 ** 60],
  ['that is not in memory', '/proc', 0],
  ['that does not exist', '/nowhere', 0],
])('a folder %s is not used', (_, folder, bytesMin) => {
  expect(inMemory(folder, bytesMin)).toBeNull();
});
