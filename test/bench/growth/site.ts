import { readFile } from 'node:fs/promises';
import { EVENTS_STREAM } from '#events/subjects.ts';
import type { ArchiveRun } from '#src/features/archive/archivist/archive-run.ts';
import { allProjections } from '#projections/all-projections.ts';
import { projectionId } from '#projections/projection.ts';
import { createRedisViews, type RedisViews } from '#projections/store/redis/redis-views.ts';
import { roles, type RoleName } from '#src/kernel/config/config.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import {
  fillWithEndedSessions,
  passWorkQueues,
  type KnownOrganization,
} from '#test/support/events/ended-sessions.ts';
import { bssWith } from '#test/support/clients/command-line.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';
import { startRedis } from '#test/support/servers/real-redis.ts';
import { descendantsOf } from '#test/support/service/processes.ts';
import {
  DEV_KEY,
  eventually,
  startService,
  type RunningService,
} from '#test/support/service/service.ts';
import { timed } from '../samples.ts';

/** A service with that many ended sessions, each role in a process of its own. */
export type Site = {
  sessions: number;
  /** The folder of its archive. */
  archive: string;
  nats: RealNats;
  redisUrl: string;
  connection: JetStreamConnection;
  views: RedisViews;
  services: Record<RoleName, RunningService>;
  /** How the events came into the stores. */
  filled: { events: number; seconds: number; projectedSeconds: number };
  /** Process ids of the two servers. */
  pids: { nats: number; redis: number };
};

const MASTER_KEY = 'the-same-in-every-process-of-the-service';
/** Limits that are not reached, but for the organization whose creates are refused. */
const PLENTY = { requests_per_minute: 1e9, concurrent_sessions: 1e5, credits: 1e9 };
const TIERS = JSON.stringify({
  max: PLENTY,
  pro: PLENTY,
  free: { ...PLENTY, concurrent_sessions: 0 },
});
const COMMON = {
  MASTER_KEY,
  TIERS,
  POOL_MIN_IDLE: '2',
  POOL_MAX_IDLE: '2',
  BROWSERS: 'simulated',
  // What is archived, and when, is the benchmark's to say.
  RETAIN_EVENTS_MAX: String(1e12),
};
const OTHER_ORGANIZATIONS = 18;
const HOUR_MS = 3_600_000;
/** A million sessions are 13 million events. */
const PROJECTED_WITHIN_MS = 3_600_000;

/** The key of an organization that may have no session at all. */
export const FULL_KEY = 'bss_full_key-of-an-organization-at-its-limit';

const organizations: readonly KnownOrganization[] = [
  { id: 'dev', tier: 'max', apiKey: DEV_KEY },
  { id: 'full', tier: 'free', apiKey: FULL_KEY },
  ...Array.from({ length: OTHER_ORGANIZATIONS }, (_, n) => ({
    id: `org_${n}`,
    tier: 'pro' as const,
    apiKey: `bss_org_${n}_key-of-a-generated-organization`,
  })),
];

/** The organization of a generated session, by its number. */
export function organizationOf(session: number): string {
  return organizations[session % organizations.length]?.id ?? '';
}

/**
 * Fills a fresh nats-server and a fresh Redis, and starts all roles on them. The projector comes
 * first and reads the whole event store, which is timed.
 */
export async function openSite(
  sessions: number,
  print: (line: string) => void,
): Promise<Site & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const { path: archive } = stack.use(await scratchDir());
  const nats = stack.use(await startNats());
  const redis = stack.use(await startRedis());
  const connection = stack.use(await connectJetStream({ url: nats.url }));
  const views = stack.use(await createRedisViews({ url: redis.url }));
  const now = Date.now();
  const endedAt = (session: number) => now - HOUR_MS - (sessions - session);
  const fill = { sessions, organizations, endedAt };
  const { ms, result: events } = await timed(() => fillWithEndedSessions(connection.nc, fill));
  const { state } = await connection.jsm.streams.info(EVENTS_STREAM);
  if (state.messages !== events) throw new Error(`${state.messages} events, not ${events}`);
  await passWorkQueues(connection);
  const env = { ...COMMON, NATS_URL: nats.url, REDIS_URL: redis.url, ARCHIVE_URL: archive };
  const start = async (role: RoleName) =>
    stack.use(
      await startService({
        ...env,
        ROLES: role,
        ...(role === 'api' ? { DEV_API_KEY: DEV_KEY } : {}),
      }),
    );
  const services = {} as Record<RoleName, RunningService>;
  const { ms: projectedMs } = await timed(async () => {
    services.projector = await start('projector');
    await untilProjected(views, events);
  });
  for (const role of roles.filter((name) => name !== 'projector'))
    services[role] = await start(role);
  const filled = { events, seconds: ms / 1000, projectedSeconds: projectedMs / 1000 };
  print(filledLine(sessions, filled));
  const all = stack.move();
  return {
    ...{ sessions, archive, nats, redisUrl: redis.url, connection, views, services, filled },
    pids: { nats: pidOf('nats-server', nats.port), redis: pidOf('redis-server', redis.port) },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The JSON output of `bss archive …` on a site. */
export async function bssArchive<Result>(
  { archive, nats, redisUrl }: Site,
  args: readonly string[],
): Promise<Result> {
  const servers = { NATS_URL: nats.url, REDIS_URL: redisUrl };
  const env = { MASTER_KEY, ...servers, ARCHIVE_URL: archive, DATA_DIR: `${archive}/data` };
  const { code, stdout, stderr } = await bssWith(env, 'archive', ...args, '--json');
  if (code !== 0) throw new Error(`bss archive ${args.join(' ')}: ${code} ${stderr}`);
  return JSON.parse(stdout) as Result;
}

/**
 * Archives all but the newest events of a site, as an archivist does once they are old enough; null
 * if it has no more than that.
 */
export async function archiveAllBut(kept: number, site: Site): Promise<ArchiveRun | null> {
  const { jsm } = site.connection;
  const { state } = await jsm.streams.info(EVENTS_STREAM);
  if (state.messages <= kept) return null;
  const border = await jsm.streams.getMessage(EVENTS_STREAM, { seq: state.last_seq - kept });
  if (border === null) throw new Error(`event ${state.last_seq - kept} is missing`);
  const run = await bssArchive<ArchiveRun>(site, ['run', '--before', border.time.toISOString()]);
  if (run.heldBack !== null) throw new Error(run.heldBack);
  return run;
}

function filledLine(sessions: number, { events, seconds, projectedSeconds }: Site['filled']) {
  const took = (s: number) => `${s.toFixed(1)} s (${(events / s).toFixed(0)} a second)`;
  return (
    `${sessions} sessions: ${events} events stored in ${took(seconds)}, ` +
    `in the read models after ${took(projectedSeconds)}`
  );
}

async function untilProjected(views: RedisViews, sequence: number): Promise<void> {
  const ids = allProjections.map(projectionId);
  await eventually(
    async () => {
      const reached = await Promise.all(ids.map((id) => views.checkpoint(id)));
      return reached.every((checkpoint) => checkpoint >= sequence);
    },
    'the read models have all events',
    PROJECTED_WITHIN_MS,
  );
}

/** The child of this process that listens on the port. */
function pidOf(program: string, port: number): number {
  const isOnPort = new RegExp(`${program}.*[ :]${port}\\b`);
  const found = descendantsOf(process.pid).find(({ command }) => isOnPort.test(command));
  if (found === undefined) throw new Error(`no ${program} on port ${port}`);
  return found.pid;
}

/** All processes of a site by name. */
export function processesOf({ pids, services }: Site): Record<string, number> {
  const own = roles.map((role) => [role, services[role].pid] as const);
  return { 'nats-server': pids.nats, 'redis-server': pids.redis, ...Object.fromEntries(own) };
}

/** Memory that the process holds now, in MiB. */
export async function residentMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) / 1024;
}

/** What the stores hold. */
export async function sizesOf({ connection, views }: Site): Promise<Record<string, number>> {
  const { state } = await connection.jsm.streams.info(EVENTS_STREAM);
  const memory = await views.redis.info('memory');
  return {
    'EVENTS, messages': state.messages,
    'EVENTS, subjects': state.num_subjects ?? 0,
    'EVENTS, MiB': state.bytes / 2 ** 20,
    'Redis used_memory, MiB': Number(/^used_memory:(\d+)/m.exec(memory)?.[1]) / 2 ** 20,
  };
}
