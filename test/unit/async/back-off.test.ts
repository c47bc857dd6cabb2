import { describe, expect, it } from 'vitest';
import { createBackOff, keepTrying } from '#src/kernel/async/back-off.ts';

describe('a back-off', () => {
  it('doubles its pauses from 100 ms to 5 s; after a success it begins again', () => {
    const backOff = createBackOff();
    const pauses = () => Array.from({ length: 8 }, () => backOff.nextMs());
    expect(pauses()).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    backOff.reset();
    expect(pauses()[0]).toBe(100);
  });

  it('has the bounds that it was given', () => {
    const backOff = createBackOff(25, 60);
    expect([backOff.nextMs(), backOff.nextMs(), backOff.nextMs()]).toEqual([25, 50, 60]);
  });

  it('given an abort, ends its pause at once', async () => {
    const backOff = createBackOff(3_600_000, 3_600_000);
    const stop = new AbortController();
    const paused = backOff.pause(stop.signal);
    stop.abort();
    await expect(paused).resolves.toBeUndefined();
  });
});

describe('keepTrying', () => {
  it('begins the work again after a failure and after an early end, until the abort', async () => {
    const stop = new AbortController();
    const failures: unknown[] = [];
    let begun = 0;
    const work = async () => {
      begun += 1;
      if (begun === 1) throw new Error('first');
      if (begun === 3) stop.abort();
    };
    await keepTrying(stop.signal, work, (error) => failures.push(error));
    expect(begun).toBe(3);
    expect(failures.map(String)).toEqual(['Error: first']);
  });

  it('does not report the failure that the abort itself causes', async () => {
    const stop = new AbortController();
    const failures: unknown[] = [];
    const work = async () => {
      stop.abort();
      throw new Error('aborted');
    };
    await keepTrying(stop.signal, work, (error) => failures.push(error));
    expect(failures).toEqual([]);
  });
});
