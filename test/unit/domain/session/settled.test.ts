import { expect, test } from 'vitest';
import { createMemoryEventStore } from '#src/event-store/event-store.memory.ts';
import type { EventStore } from '#src/event-store/event-store.ts';
import { loadSettled } from '#src/event-store/load-state.ts';
import { aSession, change, requested } from '#test/support/events.fixture.ts';

/** An event store with several replicas, one of which has no events yet. */
function withCopyBehind(eventStore: EventStore): EventStore {
  return {
    ...eventStore,
    readLast: async (aggregate, options) =>
      options?.fromLeader === true ? eventStore.readLast(aggregate, options) : null,
  };
}

test('a session that a replica does not have yet is read from the leader', async () => {
  const eventStore = createMemoryEventStore();
  const session = aSession();
  await eventStore.append([change(0, requested(session))]);
  const { state, sequence } = await loadSettled(withCopyBehind(eventStore), session);
  expect([state?.id, state?.status, sequence]).toEqual([session.id, 'creating', 1]);
});

test('a session that does not exist is null', async () => {
  expect(await loadSettled(createMemoryEventStore(), aSession())).toEqual({
    state: null,
    sequence: 0,
  });
});
