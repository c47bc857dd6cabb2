import { expect, test } from 'vitest';
import { sleep } from '#src/kernel/async/sleep.ts';
import { createPace, SLOWEST } from '#src/kernel/foreign/pace.ts';
import { createGrowing } from '#src/kernel/foreign/growing.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

/** Passes so many bytes every so many ms until that is too slow. @returns seconds it took */
async function transfer(bytes: number, everyMs: number, pieces = Infinity): Promise<number> {
  const begunAt = performance.now();
  const slow = new AbortController();
  using pace = createPace(() => slow.abort());
  for (let count = 0; count < pieces && !slow.signal.aborted; count += 1) {
    pace.wait();
    await sleep(everyMs, slow.signal);
    if (!slow.signal.aborted) pace.passed(bytes);
  }
  return Math.round((performance.now() - begunAt) / 1_000);
}

const MIB = 1024 ** 2;

test('drips end after the 120 s that each transfer has', async () => {
  expect(await transfer(1, 8_000)).toBe(120);
  expect(await transfer(1, 100)).toBe(120);
  expect(await transfer(0, 1_000_000)).toBe(120);
});

test('half the least rate ends after twice that time', async () => {
  expect(await transfer(SLOWEST.bytesPerSecond / 2, 1_000)).toBe(239);
});

test('the least rate never ends, nor what is faster', async () => {
  expect(await transfer(SLOWEST.bytesPerSecond, 1_000, 1_000)).toBe(1_000);
  expect(await transfer(MIB, 16_000, 100)).toBe(1_600);
});

test('who was fast has no more than 120 s for a drip afterwards', async () => {
  const slow = Promise.withResolvers<void>();
  using pace = createPace(slow.resolve);
  pace.wait();
  pace.passed(1024 * MIB);
  const before = performance.now();
  pace.wait();
  await slow.promise;
  expect(performance.now() - before).toBe(120_000);
});

test('the time in which the other side is not waited for does not count', async () => {
  const slow = Promise.withResolvers<string>();
  using pace = createPace(() => slow.resolve('slow'));
  for (let count = 0; count < 30; count += 1) {
    pace.wait();
    pace.passed(1);
    await sleep(60_000);
  }
  pace.wait();
  expect(await Promise.race([slow.promise, sleep(119_000).then(() => 'goes on')])).toBe('goes on');
});

test('a silence has a bound of its own', async () => {
  const silent = Promise.withResolvers<void>();
  using pace = createPace(silent.resolve, { silenceMs: 30_000 });
  const before = performance.now();
  pace.wait();
  await silent.promise;
  expect(performance.now() - before).toBe(30_000);
});

test('bytes are kept in one piece, however small those are that came', () => {
  const kept = createGrowing(100_000);
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 251));
  for (const byte of bytes) kept.add(Uint8Array.of(byte));
  kept.add(new Uint8Array(0));
  expect(kept.bytes()).toBe(100_000);
  expect(kept.all().equals(bytes)).toBe(true);
  expect(createGrowing(1).all()).toHaveLength(0);
});
