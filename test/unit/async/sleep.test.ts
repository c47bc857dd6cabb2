import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { sleep } from '#src/kernel/async/sleep.ts';
import { createVirtualTime } from '#test/support/time/virtual-time.ts';

const HOUR_MS = 3_600_000;

describe('sleep', () => {
  it('given no abort, resolves once the time is over', async () => {
    const passedMs = await createVirtualTime(1).run(async () => {
      const begunAt = performance.now();
      await sleep(HOUR_MS / 2);
      return performance.now() - begunAt;
    });
    expect(passedMs).toBe(HOUR_MS / 2);
  });

  it('given a signal that aborts meanwhile, resolves at once and does not reject', async () => {
    const stop = new AbortController();
    const asleep = sleep(HOUR_MS, stop.signal);
    stop.abort(new Error('stopped'));
    await expect(asleep).resolves.toBeUndefined();
  });

  it('given a signal that has aborted already, resolves at once', async () => {
    await expect(sleep(HOUR_MS, AbortSignal.abort())).resolves.toBeUndefined();
  });

  it('leaves no listener on the signal, whether it slept to the end or was woken', async () => {
    const stop = new AbortController();
    const asleep = sleep(HOUR_MS, stop.signal);
    const brief = sleep(1, stop.signal);
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(2);
    await brief;
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1);
    stop.abort();
    await asleep;
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
  });

  it('leaves no timer behind when it is woken', async () => {
    const before = timers();
    const stop = new AbortController();
    const asleep = sleep(HOUR_MS, stop.signal);
    expect(timers()).toBe(before + 1);
    stop.abort();
    await asleep;
    expect(timers()).toBe(before);
  });

  it('with `ref: false` does not keep the process alive', async () => {
    const before = timers();
    const stop = new AbortController();
    const asleep = sleep(HOUR_MS, stop.signal, { ref: false });
    expect(timers()).toBe(before);
    stop.abort();
    await asleep;
  });
});

/** The timers that keep this process alive. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
}
