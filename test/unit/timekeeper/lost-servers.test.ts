import { expect, it } from 'vitest';
import { createMemoryFiles } from '#src/archive/archive-files.memory.ts';
import { openArchive } from '#src/archive/archive.ts';
import { withArchive } from '#src/archive/archived-event-store.ts';
import { Unavailable } from '#src/errors.ts';
import type { EventStore } from '#src/event-store/event-store.ts';
import type { ServerEvent } from '#events/server.ts';
import { createMemoryEventStore } from '#src/event-store/event-store.memory.ts';
import { lastOwnEvent } from '#src/timekeeper/lost-servers.ts';
import { record } from '#test/support/history.ts';

const server = { kind: 'server', id: 'srv_1' } as const;
const joined: ServerEvent = {
  type: 'server.joined',
  data: { ip: '10.0.0.7', browsers: 'simulated', poolMax: 4 },
};
const restarting: ServerEvent = { type: 'server.restarting', data: {} };
const carried: ServerEvent = { type: 'server.carried-forward', data: { archivedUpTo: 2 } };

it('a state that is carried forward is no sign of life and does not shorten a restart', async () => {
  const eventStore = createMemoryEventStore();
  await record<'server'>(eventStore, server, joined, restarting);
  expect(await lastOwnEvent(eventStore, server.id)).toMatchObject({ type: 'server.restarting' });
  await record<'server'>(eventStore, server, carried, carried);
  expect(await lastOwnEvent(eventStore, server.id)).toMatchObject({
    type: 'server.restarting',
    sequence: 2,
  });
});

it('counts if the events before it are purged, and this process has no archive', async () => {
  const log = createMemoryEventStore();
  await record<'server'>(log, server, joined, carried);
  const purged: EventStore = {
    ...log,
    info: async () => ({ ...(await log.info()), firstSequence: 2 }),
    readLastUpTo: async () => null,
    read: (options) => log.read({ ...options, after: 1 }),
  };
  const eventStore = withArchive(purged, () => openArchive(createMemoryFiles()));
  await expect(eventStore.readLastUpTo(server, 1)).rejects.toThrow(Unavailable);
  expect(await lastOwnEvent(eventStore, server.id)).toMatchObject({
    type: carried.type,
    sequence: 2,
  });
});

it('of a server without events is none', async () => {
  expect(await lastOwnEvent(createMemoryEventStore(), server.id)).toBeNull();
});
