import { expect, it } from 'vitest';
import { organizationSessions, waitingSessions } from '#projections/organization-sessions.ts';
import { projectionId, type Projection } from '#projections/projection.ts';
import { runProjection } from '#projections/runner/run-projection.ts';
import { liveServers, servers } from '#projections/servers.ts';
import { sessionView, sessionKey } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import { workloads } from '#projections/workloads.ts';
import { handleCreateSession, type CreateRequest } from '#src/commands/create-session.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { decideServer } from '#src/kernel/domain/fleet/server.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { isRejection, reject, Unavailable } from '#src/kernel/errors.ts';
import { subscribeToSessions } from '#src/kernel/event-store/session-events.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import { browser, createSession, T0 } from '#test/support/examples.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import { context, watchedLog } from '#test/support/watched-event-store.ts';

const { organizationId } = sessionRef;
const assign: SessionCommand = { type: 'AssignSession', workloadId: 'wl_1', serverId: 'srv_1' };
const activate: SessionCommand = { type: 'ActivateSession', workload: browser(), now: T0 };

it('a create is answered with the active session once its browser is ready and reads show it', async () => {
  await using service = await openService();
  const created = service.create('ses_1');
  await service.whenRecorded('ses_1');
  await service.send('ses_1', activate);
  expect(await created).toMatchObject({
    state: { id: 'ses_1', status: 'active' },
    isChanged: true,
    start: 'warm',
    phases: { assignedAt: null, activatedAt: expect.any(Number) as number },
  });
  expect(
    await service.views.read(projectionId(sessionView), sessionKey(organizationId, 'ses_1')),
  ).toContain('"active"');
});

it('the answer can be rendered while reads do not show the active session yet', async () => {
  const rendered = Promise.withResolvers<string>();
  await using service = await openService({ readableAfter: rendered.promise });
  const created = service.create('ses_1', {
    whenSettled: ({ status }) => rendered.resolve(status),
  });
  await service.whenRecorded('ses_1');
  await service.send('ses_1', activate);
  expect(await rendered.promise).toBe('active');
  expect(await created).toMatchObject({ state: { status: 'active' } });
});

it('a refused create has no answer to render', async () => {
  await using service = await openService();
  const limits = { concurrentSessions: 0 };
  const settled: string[] = [];
  const whenSettled = ({ status }: { status: string }) => settled.push(status);
  await service.create('ses_1', { limits, whenSettled });
  expect(settled).toEqual([]);
});

it('a session whose browser is launched for it starts cold', async () => {
  await using service = await openService();
  const created = service.create('ses_1');
  await service.whenRecorded('ses_1');
  await service.send('ses_1', assign);
  await service.send('ses_1', activate);
  expect(await created).toMatchObject({
    start: 'cold',
    phases: { assignedAt: expect.any(Number) as number },
  });
});

it('a create that shall not wait is answered with the session that waits for its browser', async () => {
  await using service = await openService();
  expect(await service.create('ses_1', { waitMs: 0 })).toMatchObject({
    state: { status: 'creating' },
    start: null,
    phases: { activatedAt: null },
  });
});

it('a create whose browser is not ready in time is answered with the session that waits for it', async () => {
  await using service = await openService();
  expect(await service.create('ses_1', { waitMs: 1 })).toMatchObject({
    state: { status: 'creating' },
    isChanged: true,
    start: null,
  });
  expect(service.watched()).toBe(0);
});

it('a create fails as Unavailable if the event store fails, and the session is not watched any longer', async () => {
  await using service = await openService();
  service.failAppends();
  await expect(service.create('ses_1')).rejects.toThrow(Unavailable);
  expect(service.watched()).toBe(0);
});

it('a request beyond the caller’s rate limit appends nothing', async () => {
  await using service = await openService();
  const beyond = reject('RATE_LIMIT_EXCEEDED', {});
  const admitted = Promise.resolve(beyond);
  expect(await service.create('ses_1', { admitted })).toBe(beyond);
  expect(await service.lastOf('ses_1')).toBeNull();
});

it('a request beyond the servers’ room and the queue appends nothing', async () => {
  await using service = await openService({ queueMax: 0 });
  await service.create('ses_1', { waitMs: 0 });
  await service.whenWaiting(1);
  expect(await service.create('ses_2', { waitMs: 0 })).toMatchObject({
    code: 'NO_SERVERS_AVAILABLE',
    context: { waiting: 1, queue_max: 0 },
  });
  expect(await service.lastOf('ses_2')).toBeNull();
});

it('an organization fills its share of the queue, and another one its own', async () => {
  await using service = await openService({ queueMax: 2, perOrganizationMax: 1 });
  await service.create('ses_1', { waitMs: 0 });
  await service.whenWaiting(1);
  await service.create('ses_2', { waitMs: 0 });
  await service.whenWaiting(2);
  expect(await service.create('ses_3', { waitMs: 0 })).toMatchObject({
    code: 'NO_SERVERS_AVAILABLE',
    context: { waiting: 2, queue_max: 2, organization_waiting: 2, queue_max_per_organization: 1 },
  });
  expect(await service.lastOf('ses_3')).toBeNull();

  const identity = { organizationId: 'another', id: 'ses_4' };
  const command = createSession({ durationMs: 60_000 });
  expect(await service.create('ses_4', { identity, command, waitMs: 0 })).toMatchObject({
    code: 'INSUFFICIENT_CREDITS',
  });
});

it('a repeated request is answered with its session, however full the servers are', async () => {
  await using service = await openService({ queueMax: 0 });
  const command = createSession({ fingerprint: 'same body' });
  await service.create('ses_1', { command, waitMs: 0 });
  await service.whenWaiting(1);
  expect(await service.create('ses_1', { command, waitMs: 0 })).toMatchObject({
    state: { id: 'ses_1' },
    isChanged: false,
  });
});

it('creates that arrive together share one append, whichever is admitted first', async () => {
  await using service = await openService();
  const late = Promise.withResolvers<null>();
  const both = [
    service.create('ses_1', { waitMs: 0 }),
    service.create('ses_2', { waitMs: 0, admitted: late.promise }),
  ];
  setImmediate(() => late.resolve(null));
  await Promise.all(both);
  const [first, second] = await Promise.all(['ses_1', 'ses_2'].map(service.lastOf));
  expect(second?.sequence).toBe((first?.sequence ?? 0) + 1);
});

it('a session that the ledger refuses is not watched any longer', async () => {
  await using service = await openService();
  const limits = { concurrentSessions: 0 };
  expect(await service.create('ses_1', { limits })).toMatchObject({
    code: 'SESSION_LIMIT_EXCEEDED',
  });
  expect(service.watched()).toBe(0);
});

/** A server with room for one browser, and read models that follow the event store. */
async function openService({
  queueMax = 10,
  perOrganizationMax = 10,
  readableAfter = Promise.resolve<unknown>(null),
} = {}) {
  await using stack = new AsyncDisposableStack();
  const eventStore = await watchedLog();
  const commands = context(eventStore);
  const views = stack.use(createMemoryViews());
  const late: typeof views = {
    ...views,
    async waitForCheckpoint(...asked) {
      await readableAfter;
      return views.waitForCheckpoint(...asked);
    },
  };
  const received = stack.use(await subscribeToSessions(eventStore, rethrow));
  let watched = 0;
  const sessionEvents: typeof received = {
    ...received,
    watch(id, listener) {
      watched += 1;
      const unwatch = received.watch(id, listener);
      return () => {
        watched -= 1;
        unwatch();
      };
    },
  };
  const stop = new AbortController();
  const follow = (projection: Projection<unknown>) =>
    runProjection({
      eventStore,
      views,
      deadLetters: createMemoryDeadLetters(),
      signal: stop.signal,
      onDeadLetter: rethrow,
      projection,
    });
  const following = Promise.all(
    [sessionView, organizationSessions, servers, workloads].map(follow),
  );
  stack.defer(async () => {
    stop.abort();
    await following;
  });
  const join = { type: 'Join', ip: '10.0.0.1', browsers: 'docker', poolMax: 1 } as const;
  const server = { kind: 'server', id: 'srv_1' } as const;
  const metadata = newMetadata('test');
  await handleCommand<'server'>(commands, server, (state) => decideServer(join, state), metadata);
  const count = async (projection: Projection<unknown>, list: string) =>
    (await views.counts(projectionId(projection), [list]))[0];
  await expect.poll(() => count(servers, liveServers)).toBe(1);

  const lastOf = (id: string) => eventStore.readLast<'session'>({ ...sessionRef, id });
  const kept = stack.move();
  return {
    views,
    lastOf,
    watched: () => watched,
    failAppends() {
      eventStore.beforeAppend = () => Promise.reject(new Unavailable('event-log'));
    },
    create: (id: string, request: Partial<CreateRequest> = {}) =>
      handleCreateSession(
        {
          context: commands,
          views: late,
          sessionEvents,
          queue: { max: queueMax, perOrganizationMax },
        },
        {
          identity: { organizationId, id },
          command: createSession(),
          metadata: newMetadata('test'),
          limits: { concurrentSessions: 5 },
          admitted: Promise.resolve(null),
          waitMs: 60_000,
          span: null,
          ...request,
        },
      ),
    async send(id: string, command: SessionCommand): Promise<void> {
      const identity = { organizationId, id };
      const handled = await handleSessionCommand(commands, identity, command, newMetadata('test'));
      if (isRejection(handled)) throw new Error(handled.code);
    },
    whenRecorded: (id: string) => expect.poll(() => lastOf(id)).not.toBeNull(),
    whenWaiting: (sessions: number) =>
      expect.poll(() => count(organizationSessions, waitingSessions)).toBe(sessions),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function rethrow(error: unknown): never {
  throw error;
}
