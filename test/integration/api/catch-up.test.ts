import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import { servers } from '#projections/servers.ts';
import { sessionView } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import { watchCatchUp } from '#src/roles/api/health/catch-up.ts';
import { startHealthMonitor, type HealthOptions } from '#src/roles/api/health/health-monitor.ts';
import { serviceHealth } from '#src/roles/api/routes/service/health.get.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { watchStoreIdentity } from '#src/kernel/event-store/store-identity.ts';
import { accessed, MINUTE, T0 } from '#test/support/examples.ts';
import { record, sessionRef } from '#test/support/history.ts';
import { eventStoreOfSessions, startProjector } from '#test/support/projector.ts';
import { eventually } from '#test/support/service/service.ts';

/** The monitor of a healthy service, except for the given parts. */
function startMonitor(given: Partial<HealthOptions> & Pick<HealthOptions, 'views'>) {
  return startHealthMonitor({
    isEventStoreConnected: () => true,
    isSameEventStore: () => true,
    isReceivingEvents: () => true,
    isRateLimitShared: () => true,
    readStoreUse: async () => null,
    hasCaughtUp: () => true,
    position: () => 0,
    now: Date.now,
    ...given,
  });
}

test('a service becomes ready once its read models are built, and stays ready', async () => {
  const log = await eventStoreOfSessions(3);
  await using views = createMemoryViews();
  await using catchUp = watchCatchUp(log, views);
  using health = startMonitor({ views, hasCaughtUp: () => catchUp.isDone(), position: () => 12 });
  await using projecting = new AsyncDisposableStack();
  projecting.use(startProjector(servers, log, views));
  projecting.use(startProjector(sessionView, log, views));
  await views.waitForCheckpoint(projectionId(sessionView), 12, 60_000);
  expect(catchUp.isDone()).toBe(false);
  expect(health.missing()).toContain('read model, which is being folded');
  expect(health.database()).toBe('degraded');

  projecting.use(startProjector(organizationSessions, log, views));
  await eventually(() => catchUp.isDone(), 'it has caught up');
  expect(health.missing()).not.toContain('read model, which is being folded');
  await views.drop(projectionId(sessionView));
  expect(catchUp.isDone()).toBe(true);
});

test('a service is not ready while the servers are folded: it would refuse each create', async () => {
  const eventStore = createMemoryEventStore();
  const joined = { ip: '10.0.0.7', browsers: 'simulated', poolMax: 4 } as const;
  const server = { kind: 'server', id: 'srv_1' } as const;
  await record<'server'>(eventStore, server, { type: 'server.joined', data: joined });
  await using views = createMemoryViews();
  let asked = 0;
  function lastSequence(): Promise<number> {
    asked += 1;
    return eventStore.lastSequence();
  }
  await using catchUp = watchCatchUp({ lastSequence }, views);
  await using projecting = new AsyncDisposableStack();
  projecting.use(startProjector(sessionView, eventStore, views));
  projecting.use(startProjector(organizationSessions, eventStore, views));
  // A second look means that the first one did not find everything.
  await eventually(() => catchUp.isDone() || asked > 1, 'it has looked');
  expect(catchUp.isDone()).toBe(false);
  projecting.use(startProjector(servers, eventStore, views));
  await eventually(() => catchUp.isDone(), 'it has caught up');
});

test('a service without a server for browsers is ready, but unhealthy', async () => {
  await using views = createMemoryViews();
  using health = startMonitor({ views });
  await eventually(() => health.autoscaler() === 'unhealthy', 'the servers are counted: none');
  expect([health.overall(), health.missing()]).toEqual(['unhealthy', []]);
});

test('health is degraded once lists are more than ten seconds behind the event store', async () => {
  const log = await eventStoreOfSessions(3);
  await using views = createMemoryViews();
  await using _ = startProjector(organizationSessions, log, views);
  let [position, now] = [12, 0];
  using health = startMonitor({ views, position: () => position, now: () => now });
  await views.waitForCheckpoint(projectionId(organizationSessions), 12, 60_000);
  position = 13;
  await eventually(() => {
    // The clock passes ten seconds during the checks, whenever they run.
    now += 1_000;
    return health.database() === 'degraded';
  }, 'it is late');
  expect(now).toBeGreaterThan(10_000);
  position = 12;
  await record<'session'>(log, sessionRef('s1'), accessed(T0 + 9 * MINUTE));
  await eventually(() => health.database() === 'healthy', 'it is not late any more');
});

test('health reports that a service has to be restarted if its event store was replaced', async () => {
  await using views = createMemoryViews();
  let look = () => Promise.resolve({ id: 'the first', firstSequence: 1, lastSequence: 7 });
  const reported: boolean[] = [];
  await using storeIdentity = await watchStoreIdentity(
    { info: () => look() },
    (isSame) => reported.push(isSame),
    5,
  );
  using health = startMonitor({ isSameEventStore: () => storeIdentity.isSame(), views });
  let asked = 0;
  look = () => {
    asked += 1;
    return Promise.reject(new Unavailable('event-log'));
  };
  await eventually(() => asked > 1, 'it has been asked while it is away');
  expect(health.database()).toBe('healthy');
  look = () => Promise.resolve({ id: 'another', firstSequence: 1, lastSequence: 7 });
  await eventually(() => health.database() === 'unhealthy', 'it is found out');
  expect(health.missing().join()).toContain('restart');
  look = () => Promise.resolve({ id: 'the first', firstSequence: 1, lastSequence: 7 });
  await eventually(() => health.database() === 'healthy', 'the first is there again');
  look = () => Promise.reject(new Error('stream not found'));
  await eventually(() => health.database() === 'unhealthy', 'there is none');
  expect(reported).toEqual([false, true, false]);
});

test('a service is not ready until it can follow the event store', async () => {
  await using views = createMemoryViews();
  let isReceiving = false;
  using health = startMonitor({ isReceivingEvents: () => isReceiving, views });
  const notReceiving = 'event log, from which this process receives no events';
  expect([health.database(), health.missing()]).toEqual([
    'degraded',
    expect.arrayContaining([notReceiving]),
  ]);
  isReceiving = true;
  expect(health.database()).toBe('healthy');
  expect(health.missing()).not.toContain(notReceiving);
});

test('an object store that is nearly full is a degraded service, until there is room', async () => {
  // A server is live: nothing else is wrong.
  await using views = Object.assign(createMemoryViews(), { counts: async () => [1] });
  let bytes = 84;
  using health = startMonitor({ views, readStoreUse: async () => ({ bytes, maxBytes: 100 }) });
  await using server = Fastify();
  const context = { now: Date.now } as CommandContext;
  serviceHealth(server.withTypeProvider(), { health, context, ownHosts: [] });
  const tells = async (word: string) => {
    const { status, dependencies } = (await server.inject('/api/health')).json();
    return status === word && dependencies.object_store === word;
  };
  await eventually(() => tells('healthy'), 'there is room');
  bytes = 86;
  await eventually(() => tells('degraded'), 'it says that it is nearly full');
  bytes = 10;
  await eventually(() => tells('healthy'), 'it says that there is room');
});
