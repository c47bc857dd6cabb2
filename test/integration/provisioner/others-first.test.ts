import { afterEach, expect, test } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import type { Delivery, OpenWorkQueue } from '#src/messaging/work-queue.ts';
import { eventually } from '#test/support/service/service.ts';
import { openFleet } from '#test/support/service/fleet.ts';

type Change = (delivery: Delivery<RecordedEvent>) => Partial<Delivery<RecordedEvent>>;

let fleet: Awaited<ReturnType<typeof openFleet>>;
afterEach(() => fleet[Symbol.asyncDispose]());

/** The provisioners' queue with changed deliveries. */
function changed(open: OpenWorkQueue, change: Change): OpenWorkQueue {
  return async (...options) => {
    const workQueue = await open(...options);
    async function next(waitMs: number, signal: AbortSignal) {
      const delivery = await workQueue.next(waitMs, signal);
      return delivery === null ? null : { ...delivery, ...change(delivery) };
    }
    return { ...workQueue, next };
  };
}

test('an operator’s retry of a dead letter is handled before the organization whose turn it is', async () => {
  const retried = new Set<string>();
  const isRetry = ({ item }: Delivery<RecordedEvent>) => {
    return { isRetry: 'id' in item.aggregate && retried.has(item.aggregate.id) };
  };
  fleet = await openFleet({ items: (open) => changed(open, isRetry) });
  await fleet.join({ limits: { minIdle: 0, maxIdle: 0, max: 1 } });
  const first = await fleet.create();
  await fleet.waitForStatus(first, 'active');
  const second = await fleet.create();
  retried.add(second);
  const late = await fleet.create({}, 'beta');
  const stop = { type: 'StopSession', reason: 'user', now: Date.now() } as const;
  await fleet.sendSessionCommand(first, stop);
  const isServed = async () => {
    const states = await Promise.all([second, late].map(fleet.read));
    return states.find(({ status }) => status === 'active') ?? null;
  };
  expect((await eventually(isServed, 'one of them is active')).id).toBe(second);
});
