import { expect, test } from 'vitest';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { eventually } from '#test/support/service/service.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** A browser that ends between the activation of its session and the event store's answer. */

useVirtualTime();

test('a browser that ends before its activation is answered is not observed from then on', async () => {
  const stored = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const events = (eventStore: EventStore): EventStore => ({
    ...eventStore,
    async append(changes) {
      const result = await eventStore.append(changes);
      const types = changes.flatMap((change) => change.events.map(({ type }) => type));
      if (types.includes('session.activated')) {
        stored.resolve();
        await answered.promise;
      }
      return result;
    },
  });
  await using fleet = await openFleet({ events });
  const calls: string[] = [];
  const server = await fleet.join({
    blackBoxes: {
      begin: (_, session) => void calls.push(session.id),
      follow: () => undefined,
      async end() {
        calls.push('end');
        return null;
      },
    },
  });
  const id = await fleet.create();
  await stored.promise;
  const { workload } = await fleet.read(id);
  server.machine.crash(workload?.workloadId ?? '');
  await fleet.waitForStatus(id, 'failed');
  answered.resolve();
  // The next session is served after the answer of the first.
  const next = await fleet.create();
  await fleet.waitForStatus(next, 'active');
  await eventually(async () => calls.includes(next), 'the next session is observed');
  expect(calls).toEqual(['end', next]);
});
