import { expect, test } from 'vitest';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { sessionRetention } from '#src/kernel/objects/sweep/session-retention.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import {
  activated,
  failed,
  HOUR,
  MINUTE,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

/** What is stored of a session is kept until a time after its end. */

const begun = [requested(), activated()];
const ended = [...begun, stopRequested(), stopped(T0, 1)];
const retainMs = 24 * HOUR;
const { organizationId, id } = sessionRef;
const group = { kind: 'recordings', organizationId, id, objects: 2, bytes: 2 };

test.each([
  ['an active session', begun, 100 * HOUR, 'keep'],
  ['one that stops', [...begun, stopRequested()], 100 * HOUR, 'keep'],
  ['one that has stopped', ended, retainMs - 1, 'keep'],
  ['one that stopped a day ago', ended, retainMs, 'expired'],
  ['one that failed long ago', [...begun, failed()], 100 * HOUR, 'expired'],
  ['one that nothing is known of', [], retainMs + MINUTE - 1, 'keep'],
  ['one that nothing was known of for long', [], retainMs + MINUTE, 'expired'],
])('what is stored of %s', async (_, events, afterMs, verdict) => {
  const eventStore = createMemoryEventStore();
  const now = () => T0 + afterMs;
  if (events.length > 0) {
    const context = createCommandContext(eventStore, now);
    await handleCommand<'session'>(context, sessionRef, () => events, newMetadata('test'));
  }
  const rule = sessionRetention('recordings', { eventStore, now }, retainMs);
  expect(rule.kind).toBe('recordings');
  expect(await rule.judge({ ...group, newestAt: T0 + MINUTE })).toBe(verdict);
});
