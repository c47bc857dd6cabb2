import { describe, expect, it } from 'vitest';
import { again, againAtOnce, doubling, fullJitter, retry } from '#src/kernel/async/retry.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { createVirtualTime } from '#test/support/time/virtual-time.ts';

const HOUR_MS = 3_600_000;
const atOnce = () => 0;

class Outage extends Error {}
const isTransient = (error: unknown) => error instanceof Outage;

describe('retry', () => {
  it('given a first attempt that succeeds, makes no other', async () => {
    let attempts = 0;
    expect(await retry({ pauseMs: atOnce }, async () => (attempts += 1))).toBe(1);
    expect(attempts).toBe(1);
  });

  it('given attempts that ask for another, counts them and gives the first result', async () => {
    const counts: number[] = [];
    const result = await retry({ pauseMs: atOnce }, async (count) => {
      counts.push(count);
      return count < 3 ? again : 'done';
    });
    expect(result).toBe('done');
    expect(counts).toEqual([1, 2, 3]);
  });

  it('given a transient error, tells of it and tries again', async () => {
    const heard: unknown[] = [];
    const outage = new Outage('away');
    const options = {
      pauseMs: atOnce,
      isTransient,
      onRetry: (error: unknown) => heard.push(error),
    };
    const result = await retry(options, async (count) => {
      if (count === 1) throw outage;
      return count;
    });
    expect(result).toBe(2);
    expect(heard).toEqual([outage]);
  });

  it('given any other error, fails with it at once', async () => {
    let attempts = 0;
    const bug = new TypeError('a bug');
    const failing = retry({ pauseMs: atOnce, isTransient }, async () => {
      attempts += 1;
      throw bug;
    });
    await expect(failing).rejects.toBe(bug);
    expect(attempts).toBe(1);
  });

  it('pauses between two attempts: not before the first, not after the last', async () => {
    const pauses: number[] = [];
    const pauseMs = (attempts: number) => {
      pauses.push(attempts);
      return 0;
    };
    const onExhausted = (attempts: number) => new Outage(`${attempts} conflicts`);
    const failing = retry({ attemptsMax: 3, pauseMs, onExhausted }, async () => again);
    await expect(failing).rejects.toThrow('3 conflicts');
    expect(pauses).toEqual([1, 2]);
  });

  it('does not pause for an attempt that asks for another at once', async () => {
    const pauseMs = () => HOUR_MS;
    const result = await retry({ pauseMs }, async (count) => (count < 3 ? againAtOnce : count));
    expect(result).toBe(3);
  });
});

describe('the bound of retry', () => {
  it('is a number of attempts; then the last attempt’s own error is thrown', async () => {
    const thrown: Outage[] = [];
    const heard: unknown[] = [];
    const options = {
      attemptsMax: 40,
      pauseMs: atOnce,
      isTransient,
      onRetry: (error: unknown) => heard.push(error),
    };
    const failing = retry(options, async (count) => {
      thrown.push(new Outage(`attempt ${count}`));
      throw thrown.at(-1);
    });
    await expect(failing).rejects.toThrow('attempt 40');
    expect(thrown).toHaveLength(40);
    expect(heard).toEqual(thrown.slice(0, -1));
  });

  it('says how many attempts were made, if the caller has no error of its own', async () => {
    const failing = retry({ attemptsMax: 2, pauseMs: atOnce }, async () => again);
    await expect(failing).rejects.toThrow('given up after 2 attempts');
  });

  it('is a time, counted from the beginning: an attempt that fails later is the last', async () => {
    const failThrice = async (count: number) => {
      if (count <= 3) throw new Outage(`attempt ${count}`);
      return count;
    };
    expect(await retry({ withinMs: HOUR_MS, pauseMs: atOnce, isTransient }, failThrice)).toBe(4);
    const late = createVirtualTime(1).run(() =>
      retry({ withinMs: 5, pauseMs: () => HOUR_MS, isTransient }, async (count) => {
        await sleep(10);
        return failThrice(count);
      }),
    );
    await expect(late).rejects.toThrow('attempt 1');
  });
});

describe('the signal of retry', () => {
  it('given an abort in a pause, fails at once with the reason', async () => {
    const stop = new AbortController();
    const paused = Promise.withResolvers<void>();
    const options = { pauseMs: () => HOUR_MS, onRetry: () => paused.resolve(), isTransient };
    const failing = retry({ ...options, signal: stop.signal }, async () => {
      throw new Outage('away');
    });
    await paused.promise;
    stop.abort(new Error('stopped'));
    await expect(failing).rejects.toThrow('stopped');
  });

  it('given an abort during an attempt, gives its result, but makes no other attempt', async () => {
    const stop = new AbortController();
    const { signal } = stop;
    let attempts = 0;
    async function stopAnd(result: 'done' | typeof again) {
      attempts += 1;
      stop.abort(new Error('stopped'));
      return result;
    }
    expect(await retry({ pauseMs: atOnce, signal }, () => stopAnd('done'))).toBe('done');
    await expect(retry({ pauseMs: atOnce, signal }, () => stopAnd(again))).rejects.toThrow(
      'stopped',
    );
    expect(attempts).toBe(2);
  });
});

describe('pauses', () => {
  it('that double begin with the shortest and stay at the longest', () => {
    const pauses = [1, 2, 3, 4, 5, 2_000].map(doubling(100, 1_000));
    expect(pauses).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  });

  it('with full jitter lie anywhere below 2, 4, 8 ms and so on, and below the longest', () => {
    const pauseMs = fullJitter(50);
    const bounds = [2, 4, 8, 16, 32, 50, 50];
    for (const [at, bound] of bounds.entries()) {
      const drawn = Array.from({ length: 200 }, () => pauseMs(at + 1));
      expect(Math.min(...drawn)).toBeGreaterThanOrEqual(0);
      expect(Math.max(...drawn)).toBeLessThan(bound);
      expect(new Set(drawn).size).toBeGreaterThan(100);
    }
  });
});
