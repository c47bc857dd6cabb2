import { expect, test } from 'vitest';
import { bidiLimits } from '#src/roles/gateway/bidi/bidi-processes.ts';

/** How many processes for WebDriver BiDi a gateway runs, by what its control groups leave it. */

const MIB = 1024 ** 2;

test.each([
  ['the chart’s gateway', { memoryBytes: 1_024 * MIB, pids: Infinity }, 1 / 2, 10],
  ['a gateway of Compose', { memoryBytes: 2_048 * MIB, pids: 512 }, 1 / 2, 21],
  ['few processes', { memoryBytes: 64_000 * MIB, pids: 100 }, 1 / 2, 6],
  ['all roles in 2 GiB', { memoryBytes: 2_048 * MIB, pids: 512 }, 1 / 4, 10],
  ['hardly any memory', { memoryBytes: 64 * MIB, pids: 4 }, 1 / 4, 1],
  ['no limit', { memoryBytes: Infinity, pids: Infinity }, 1 / 2, 200],
])('%s', (_, limits, share, bidi) => {
  const { bidi: count, bidiMemoryBytes: one, bidiTotalBytes: all } = bidiLimits(limits, share);
  expect(count).toBe(bidi);
  expect(all).toBe(Math.floor(limits.memoryBytes * share));
  // None may have all of it, but an answer of 16 MiB has to fit.
  expect(one).toBe(Math.min(512 * MIB, Math.max(96 * MIB, Math.floor(all / 2))));
});
