import { expect, test } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { Delivery, OpenWorkQueue } from '#src/kernel/messaging/work-queue.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** A server whose reads of a replica lag behind the work queue. */

useVirtualTime();

test.each([
  ['does not have its session yet', () => null],
  ['has its state from before the session was requeued', lastBefore('session.requeued')],
])('a request that has waited is accepted though a replica %s', async (_, asReplica) => {
  const withReplica = (eventStore: EventStore): EventStore => ({
    ...eventStore,
    async readLast(aggregate, options) {
      if (aggregate.kind !== 'session' || options?.fromLeader === true)
        return eventStore.readLast(aggregate, options);
      const history = await Array.fromAsync(eventStore.history(aggregate));
      return asReplica(history as RecordedEvent[]) as (typeof history)[number] | null;
    },
  });
  await using fleet = await openFleet({ events: withReplica, items: withOldItems });
  const id = await fleet.create();
  await fleet.sendSessionCommand(id, {
    type: 'AssignSession',
    workloadId: 'wl_1',
    serverId: 'srv_gone',
  });
  await fleet.sendSessionCommand(id, {
    type: 'RequeueSession',
    serverId: 'srv_gone',
    detail: 'no display',
  });
  const server = await fleet.join();
  const { workload } = await fleet.waitForStatus(id, 'active');
  expect(workload?.serverId).toBe(server.id);
});

function lastBefore(type: RecordedEvent['type']) {
  return (history: readonly RecordedEvent[]) => {
    const at = history.findIndex((event) => event.type === type);
    return history[at === -1 ? history.length - 1 : at - 1] ?? null;
  };
}

/** The items as of a minute ago: their sessions are read before they are accepted. */
function withOldItems(open: OpenWorkQueue): OpenWorkQueue {
  const aged = (delivery: Delivery<RecordedEvent>): Delivery<RecordedEvent> => {
    const time = new Date(Date.parse(delivery.item.time) - 60_000).toISOString();
    return { ...delivery, item: { ...delivery.item, time } };
  };
  return async (name, subjects) => {
    const queue = await open(name, subjects);
    return {
      ...queue,
      async next(waitMs, signal) {
        const delivery = await queue.next(waitMs, signal);
        return delivery === null ? null : aged(delivery);
      },
    };
  };
}
