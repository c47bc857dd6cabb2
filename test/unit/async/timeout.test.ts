import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { within } from '#src/kernel/async/timeout.ts';

const HOUR_MS = 3_600_000;
const unhandled: unknown[] = [];
const note = (reason: unknown) => void unhandled.push(reason);
beforeAll(() => void process.on('unhandledRejection', note));
afterAll(() => void process.off('unhandledRejection', note));

describe('within', () => {
  it('given work that is done in time, gives its result', async () => {
    expect(await within(HOUR_MS, Promise.resolve('done'))).toBe('done');
  });

  it('given work that fails in time, fails with its error', async () => {
    const failure = new Error('no such thing');
    await expect(within(HOUR_MS, Promise.reject(failure))).rejects.toBe(failure);
  });

  it('given work that is late, fails and says how long it waited', async () => {
    const never = new Promise<string>(() => {});
    await expect(within(5, never)).rejects.toThrow('no answer within 5 ms');
  });

  it('given a result for that case, gives it; given an error, fails with it', async () => {
    const never = new Promise<string>(() => {});
    expect(await within(5, never, () => 'idle')).toBe('idle');
    const late = new RangeError('too late');
    const fails = within(5, never, () => {
      throw late;
    });
    await expect(fails).rejects.toBe(late);
  });

  it('asks for that result only if the work is late', async () => {
    let asked = 0;
    await within(HOUR_MS, Promise.resolve('done'), () => (asked += 1));
    expect(asked).toBe(0);
  });

  it('leaves no timer behind, whether the work succeeds or fails', async () => {
    const before = timers();
    const done = Promise.withResolvers<void>();
    const failed = Promise.withResolvers<void>();
    const waiting = [within(HOUR_MS, done.promise), within(HOUR_MS, failed.promise)];
    expect(timers()).toBe(before + 2);
    done.resolve();
    failed.reject(new Error('no such thing'));
    await Promise.allSettled(waiting);
    expect(timers()).toBe(before);
  });

  it('given work that ends after the time-out, drops its result or failure', async () => {
    const result = Promise.withResolvers<string>();
    const failure = Promise.withResolvers<string>();
    const given = Promise.all([
      within(5, result.promise, () => 'late'),
      within(5, failure.promise, () => 'late'),
    ]);
    expect(await given).toEqual(['late', 'late']);
    result.resolve('at last');
    failure.reject(new Error('at last'));
    // Node reports unhandled rejections before the next turn of the event loop.
    await new Promise(setImmediate);
    expect(await given).toEqual(['late', 'late']);
    expect(unhandled).toEqual([]);
  });
});

/** The timers that keep this process alive. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
}
