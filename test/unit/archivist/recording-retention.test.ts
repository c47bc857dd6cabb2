import { expect, test } from 'vitest';
import type { SessionEvent } from '#events/session.ts';
import {
  recordingRetention,
  thumbnailRetention,
} from '#src/features/archive/archivist/recording-retention.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import { activated, failed, HOUR, requested, T0 } from '#test/support/examples.ts';

const kinds = [
  ['recordings', recordingRetention],
  ['thumbnails', thumbnailRetention],
] as const;
const newest = { objects: 1, bytes: 1, newestAt: T0 - HOUR };

test.each(kinds)('%s are kept while the session runs, and for a time after', async (kind, of) => {
  const eventStore = createMemoryEventStore();
  let now = T0 + 100 * HOUR;
  const context = createCommandContext(eventStore, () => now);
  const append = (...events: SessionEvent[]) =>
    handleCommand<'session'>(context, sessionRef, () => events, newMetadata('test'));
  const rule = of({ eventStore, now: () => now }, 2 * HOUR);
  expect(rule.kind).toBe(kind);
  const { organizationId, id } = sessionRef;
  const verdict = () => rule.judge({ ...newest, kind, organizationId, id });
  await append(requested({ record: true }), activated());
  expect(await verdict()).toBe('keep');
  const end = failed();
  await append(end);
  const endedAt = end.type === 'session.failed' ? Date.parse(end.data.endedAt) : 0;
  now = endedAt + 2 * HOUR - 1;
  expect(await verdict()).toBe('keep');
  now += 1;
  expect(await verdict()).toBe('expired');
});

test.each(kinds)('%s of a session that is not known go by the newest', async (kind, of) => {
  const rule = (now: number) =>
    of({ eventStore: createMemoryEventStore(), now: () => now }, 2 * HOUR);
  const group = { ...newest, kind, organizationId: 'org_acme', id: 'ses_gone' };
  expect(await rule(T0).judge(group)).toBe('keep');
  expect(await rule(T0 + HOUR).judge(group)).toBe('expired');
});
