import { describe, expect, it } from 'vitest';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { openArchive } from '#src/features/archive/archive.ts';
import { withArchive } from '#src/features/archive/archived-event-store.ts';
import { Unavailable, WrittenByNewer } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { ServerEvent } from '#events/server.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { declareAllLost, lastOwnEvent } from '#src/roles/timekeeper/lost-servers.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { projectionId, type Projection } from '#projections/projection.ts';
import { runProjection } from '#projections/runner/run-projection.ts';
import { servers } from '#projections/servers.ts';
import { sessionView } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import { workloads } from '#projections/workloads.ts';
import { assigned, createSession, T0 } from '#test/support/examples.ts';
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

describe('lost servers, of which one session cannot be read', () => {
  const ADA = { organizationId: 'acme', id: 'ses_ada' };
  const BOB = { organizationId: 'acme', id: 'ses_bob' };
  const EVE = { organizationId: 'acme', id: 'ses_eve' };

  /** Two sessions on the first server, one on the second. */
  async function fleet(unreadable: string) {
    const stored = createMemoryEventStore();
    const eventStore: EventStore = {
      ...stored,
      readLast: async (aggregate, options) => {
        if ('id' in aggregate && aggregate.id === unreadable) throw new WrittenByNewer('state v9');
        return stored.readLast(aggregate, options);
      },
    };
    const context = createCommandContext(eventStore, () => T0);
    for (const id of ['srv_1', 'srv_2']) await record<'server'>(stored, { ...server, id }, joined);
    const readable = createCommandContext(stored, () => T0);
    await registerOrganization(
      readable,
      { id: 'acme', name: 'Acme', tier: 'max', credits: 10_000 },
      newMetadata('test'),
    );
    for (const [session, serverId] of [
      [ADA, 'srv_1'],
      [BOB, 'srv_1'],
      [EVE, 'srv_2'],
    ] as const) {
      const limits = { concurrentSessions: 10 };
      await handleSessionCommand(readable, session, createSession(), newMetadata('test'), limits);
      const aggregate = { kind: 'session', ...session } as const;
      await record<'session'>(stored, aggregate, assigned('wl_1', serverId));
    }
    const views = createMemoryViews();
    const folding = new AbortController();
    const projections: Projection<unknown>[] = [servers, sessionView, workloads];
    const running = projections.map((projection) =>
      runProjection({
        ...{ projection, eventStore: stored, views },
        ...{ deadLetters: createMemoryDeadLetters(), signal: folding.signal },
        onDeadLetter: () => undefined,
      }),
    );
    const end = await stored.lastSequence();
    for (const projection of projections)
      expect(await views.waitForCheckpoint(projectionId(projection), end, 60_000)).toBe(true);
    folding.abort();
    await Promise.all(running);
    const warned: object[] = [];
    const log = { warn: (what: object) => warned.push(what) } as unknown as Logger;
    await declareAllLost({ context, views, log }, ['srv_1', 'srv_2']);
    const statusOf = async (session: typeof ADA) =>
      (await loadState<'session'>(stored, { kind: 'session', ...session })).state?.status;
    const serverOf = async (id: string) =>
      (await loadState<'server'>(stored, { kind: 'server', id })).state?.status;
    return {
      warned,
      sessions: await Promise.all([ADA, BOB, EVE].map(statusOf)),
      servers: await Promise.all(['srv_1', 'srv_2'].map(serverOf)),
    };
  }

  it('all others are failed, and its own server is tried again', async () => {
    const { warned, ...found } = await fleet(ADA.id);
    expect(found).toEqual({
      sessions: ['creating', 'failed', 'failed'],
      servers: ['live', 'lost'],
    });
    expect(warned).toContainEqual(
      expect.objectContaining({ serverId: 'srv_1', sessionId: ADA.id }),
    );
  });
});
