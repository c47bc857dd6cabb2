import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createNotifier } from '#src/kernel/async/notifier.ts';

const HOUR_MS = 3_600_000;

describe('a notifier', () => {
  it('wakes all who wait, and none who begins to wait afterwards', async () => {
    const notifier = createNotifier();
    const stop = new AbortController();
    const waiting = [notifier.wait(stop.signal), notifier.wait(stop.signal, HOUR_MS)];
    notifier.notify();
    await Promise.all(waiting);
    let isAwake = false;
    const later = notifier.wait(stop.signal).then(() => (isAwake = true));
    await new Promise(setImmediate);
    expect(isAwake).toBe(false);
    notifier.notify();
    await later;
  });

  it('given an abort, wakes who waits at once; given an earlier one, does not let him wait', async () => {
    const notifier = createNotifier();
    const stop = new AbortController();
    const waiting = notifier.wait(stop.signal, HOUR_MS);
    stop.abort();
    await expect(waiting).resolves.toBeUndefined();
    await expect(notifier.wait(stop.signal)).resolves.toBeUndefined();
  });

  it('given a time, wakes who waits when it is over', async () => {
    await createNotifier().wait(new AbortController().signal, 1);
  });

  it('leaves no listener on the signal and no timer', async () => {
    const notifier = createNotifier();
    const stop = new AbortController();
    const before = timers();
    const waiting = notifier.wait(stop.signal, HOUR_MS);
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1);
    expect(timers()).toBe(before + 1);
    notifier.notify();
    await waiting;
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
    expect(timers()).toBe(before);
  });
});

/** The timers that keep this process alive. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
}
