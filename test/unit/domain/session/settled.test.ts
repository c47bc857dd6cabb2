import { expect, test } from 'vitest';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { loadSettled } from '#src/event-store/load-state.ts';
import { aSession, change, requested } from '#test/support/events.fixture.ts';

/** A log of several copies, one of which has not heard of anything yet. */
function withCopyBehind(log: EventLog): EventLog {
  return {
    ...log,
    last: async (aggregate, options) =>
      options?.fromLeader === true ? log.last(aggregate, options) : null,
  };
}

test('a session that a copy of the log has not heard of is as its leader has it', async () => {
  const log = createMemoryEventLog();
  const session = aSession();
  await log.append([change(0, requested(session))]);
  const { state, sequence } = await loadSettled(withCopyBehind(log), session);
  expect([state?.id, state?.status, sequence]).toEqual([session.id, 'creating', 1]);
});

test('one that never was is none', async () => {
  expect(await loadSettled(createMemoryEventLog(), aSession())).toEqual({
    state: null,
    sequence: 0,
  });
});
