import { fillWithEndedSessions, passWorkQueues } from '#test/support/events/ended-sessions.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { startRedis } from '#test/support/servers/real-redis.ts';
import { MASTER_KEY } from '#test/support/service/two-processes.ts';
import { DEV_KEY, eventually, type RunningService } from '#test/support/service/service.ts';
import { startDashboard, type Dashboard } from './dashboard.ts';

/** Sessions that are described anew in turn. */
const OPEN = 20;
/** One life is some ten events of a session, its browser and its ledger. */
const CHANGES_A_LIFE = 40;
const HOUR_MS = 3_600_000;

export type BusyService = Dashboard & {
  /**
   * Changes sessions, and creates and stops others, until `over` is aborted.
   * @returns the organization's events a second meanwhile
   */
  work(eventsPerSecond: number, over: AbortSignal): Promise<number>;
};

/**
 * A service with that many ended sessions in its stores, on simulated browsers. Their events are
 * decided by the domain's own code; what happens after them comes from requests.
 */
export async function startBusyService(sessions: number): Promise<BusyService> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const redis = stack.use(await startRedis());
  const connection = stack.use(await connectJetStream({ url: nats.url }));
  const now = Date.now();
  await fillWithEndedSessions(connection.nc, {
    sessions,
    organizations: [{ id: 'dev', tier: 'max', apiKey: DEV_KEY }],
    endedAt: (session) => now - HOUR_MS - (sessions - session),
  });
  await passWorkQueues(connection);
  const tier = { requests_per_minute: 1e9, concurrent_sessions: 1e5, credits: 1e9 };
  const dashboard = stack.use(
    await startDashboard({
      NATS_URL: nats.url,
      REDIS_URL: redis.url,
      MASTER_KEY,
      POOL_MAX: '60',
      POOL_MIN_IDLE: '4',

      TIERS: JSON.stringify({ max: tier }),
    }),
  );
  const { service } = dashboard;
  await eventually(
    async () => (await service.request('GET', '/api/sessions?limit=1')).body.total === sessions,
    `${sessions} sessions are listed`,
  );
  const ids: string[] = [];
  for (let made = 0; made < OPEN; made += 1)
    ids.push((await dashboard.create({ session_name: `open-${made}`, duration: '1h' })).id);
  const eventStore = createJetStreamEventStore(connection);
  const all = stack.move();
  return {
    ...dashboard,
    async work(eventsPerSecond, over) {
      const [before, begun] = [await eventStore.lastSequence(), performance.now()];
      const asked: Promise<unknown>[] = [];
      const everyMs = 1000 / eventsPerSecond;
      for (let count = 1; !over.aborted; count += 1) {
        const id = ids[count % ids.length];
        const isLife = count % CHANGES_A_LIFE === 0;
        asked.push(isLife ? live(dashboard) : change(service, id, count));
        await pause(begun + asked.length * everyMs - performance.now());
      }
      await Promise.all(asked);
      const seconds = (performance.now() - begun) / 1000;
      return ((await eventStore.lastSequence()) - before) / seconds;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function change(service: RunningService, id: string | undefined, count: number) {
  const description = `changed ${count} times`;
  const { status } = await service.request('PATCH', `/api/sessions/${id}`, { description });
  if (status !== 200) throw new Error(`a change was answered with ${status}`);
}

async function live(dashboard: Dashboard): Promise<void> {
  const { id } = await dashboard.create({ session_name: 'short', duration: '10m' });
  await dashboard.service.request('DELETE', `/api/sessions/${id}`);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}
