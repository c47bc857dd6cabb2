import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EVENTS_STREAM } from '#events/subjects.ts';
import { organizationSessions, sessionLists } from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import { sessionView } from '#projections/session-view.ts';
import { servers } from '#projections/servers.ts';
import { createRedisViews, type RedisViews } from '#projections/store/redis/redis-views.ts';
import { workloads } from '#projections/workloads.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { fillLog } from '#test/support/fill-event-store.ts';
import { generatedOrganization } from '#test/support/events/event-generator.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { startRedis } from '#test/support/servers/real-redis.ts';
import { eventually } from '#test/support/service/service.ts';
import { runApart, type Apart } from './run-apart.ts';
import { atLeast, atMost, row, summarize, timed, type Verdict } from './samples.ts';

/** Events in the store unless `BENCH_EVENTS` is set. One in ten begins a session. */
const EVENTS = Number(process.env['BENCH_EVENTS'] ?? 1_000_000);
const RATIO_MIN = 0.4;
/** Under other load the time measures that load: the best of up to this many rounds counts. */
const ROUNDS_MAX = 3;
/**
 * The memory of the whole process; 400 were measured. The memory of a rebuild does not grow with
 * the event store: it holds the messages of one and a half pulls, and three batches of 4,000
 * events.
 */
const RSS_MIB_MAX = 640;
const PAGES = 5_000;
const OFFSET_MAX = 10_000;
const BSS = fileURLToPath(new URL('../../src/apps/cli/bss.ts', import.meta.url));
const BARE = fileURLToPath(new URL('bare-consumer.ts', import.meta.url));

/** The resources that are open during the measurements. */
type Bench = {
  natsUrl: string;
  /** The service that the command line finds. */
  env: Record<string, string>;
  views: RedisViews;
  print: (line: string) => void;
};

/** The command line's report of a rebuild, and the most memory that it took. */
type Rebuilt = { events: number; events_per_second: number; dead_letters: number } & Pick<
  Apart,
  'rssMib' | 'cpuSeconds'
>;

/** A million events: rebuilds, a verification, and pages of long lists. */
export async function benchRebuild(
  print: (line: string) => void,
  events = EVENTS,
): Promise<Verdict[]> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const redis = stack.use(await startRedis());
  const directory = await mkdtemp(join(tmpdir(), 'bench-rebuild-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const connection = stack.use(await connectJetStream({ url: nats.url }));
  const views = stack.use(await createRedisViews({ url: redis.url }));
  const env = { NATS_URL: nats.url, REDIS_URL: redis.url, DATA_DIR: directory };
  const bench = { natsUrl: nats.url, env, views, print };
  const filled = await timed(() => fillLog(connection.nc, events));
  const { state } = await connection.jsm.streams.info(EVENTS_STREAM);
  const mib = (state.bytes / 2 ** 20).toFixed(0);
  print(`${state.messages} events, ${mib} MiB, written in ${(filled.ms / 1000).toFixed(1)} s\n`);
  return [
    ...(await measureRebuilds(bench)),
    await verifyAll(bench),
    ...(await measurePages(bench)),
  ];
}

/** Each beside the bare consumer before and after it; projections of few events without. */
async function measureRebuilds(bench: Bench): Promise<Verdict[]> {
  const { print } = bench;
  const verdicts: Verdict[] = [];
  let most = { deadLetters: 0, rssMib: 0 };
  const note = ({ dead_letters: deadLetters, rssMib }: Rebuilt) => {
    most = {
      deadLetters: Math.max(most.deadLetters, deadLetters),
      rssMib: Math.max(most.rssMib, rssMib),
    };
  };
  let before = await readBare(bench);
  for (const projection of [organizationSessions, sessionView]) {
    let best = 0;
    for (let round = 1; round <= ROUNDS_MAX && best < RATIO_MIN; round += 1) {
      const rebuilt = await rebuildOne(bench, projection);
      const after = await readBare(bench);
      const byClock = (2 * rebuilt.events_per_second) / (before.rate + after.rate);
      const byProcessor = (before.cpuSeconds + after.cpuSeconds) / (2 * rebuilt.cpuSeconds);
      print(
        `ratio by the clock ${byClock.toFixed(2)}, by processor time ${byProcessor.toFixed(2)}`,
      );
      best = Math.max(best, byClock);
      before = after;
      note(rebuilt);
    }
    verdicts.push(
      atLeast(`rebuild of ${projectionId(projection)} ÷ bare consumer`, best, RATIO_MIN),
    );
  }
  for (const projection of [workloads, servers]) note(await rebuildOne(bench, projection));
  return [
    ...verdicts,
    atMost('events that a rebuild passed over', most.deadLetters, 0),
    atMost('memory of a process that rebuilds, MiB', most.rssMib, RSS_MIB_MAX),
  ];
}

async function readBare({ natsUrl, print }: Bench): Promise<{ rate: number; cpuSeconds: number }> {
  const { printed, cpuSeconds } = await runApart([BARE, natsUrl]);
  const rate = Number(printed);
  print(
    `${'bare ordered consumer that parses, a second'.padEnd(48)}${rate.toFixed(0).padStart(8)}`,
  );
  return { rate, cpuSeconds };
}

async function rebuildOne({ env, print }: Bench, { name }: { name: string }): Promise<Rebuilt> {
  const apart = await runApart([BSS, 'projections', 'rebuild', name, '--json'], env);
  const { printed, rssMib, cpuSeconds } = apart;
  const [rebuilt] = JSON.parse(printed) as Omit<Rebuilt, keyof Apart>[];
  if (rebuilt === undefined) throw new Error(`nothing was rebuilt: ${printed}`);
  const { events, events_per_second: rate } = rebuilt;
  const what = `rebuild of ${name}: ${events} events, a second`.padEnd(48);
  print(`${what}${rate.toString().padStart(8)}, ${rssMib.toFixed(0)} MiB`);
  return { ...rebuilt, rssMib, cpuSeconds };
}

async function verifyAll({ env, print }: Bench): Promise<Verdict> {
  const { ms, result } = await timed(() => runApart([BSS, 'projections', 'verify'], env));
  print(`verified in ${(ms / 1000).toFixed(1)} s, ${result.rssMib.toFixed(0)} MiB:`);
  print(result.printed);
  const isEqual = result.code === 0 && result.printed.trimEnd().endsWith('\nequal');
  return atLeast('verify ends with equal', isEqual ? 1 : 0, 1);
}

/** Pages of any status and offset, each beside a round trip without work. */
async function measurePages(bench: Bench): Promise<Verdict[]> {
  const { views, print } = bench;
  const one = [[], [['team', 'shop']], [['team', 'web']]] as [string, string][][];
  const both = [
    [
      ['team', 'web'],
      ['run', 'nightly'],
    ],
  ] as [string, string][][];
  let best = Infinity;
  print(`\nmilliseconds${' '.repeat(32)}      p50      p95      p99     n`);
  for (let round = 1; round <= ROUNDS_MAX && best > 3; round += 1) {
    const { trip, page, total } = await timePages(views, one, PAGES);
    print(row('Redis round trip', trip));
    print(row(`page of 20 of ${total} sessions`, page));
    best = Math.min(best, page.p99 / trip.p99);
  }
  const { page } = await timePages(views, both, PAGES / 10);
  print(row('page of those with two labels', page));
  return [atMost('list page p99 ÷ Redis round trip p99', best, 3)];
}

async function timePages(views: RedisViews, labels: [string, string][][], count: number) {
  const id = projectionId(organizationSessions);
  const statuses = [null, 'creating', 'queued', 'active', 'stopped', 'failed'] as const;
  const [total] = await views.counts(id, sessionLists(generatedOrganization, null, []));
  const trips: number[] = [];
  const pages: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const status = statuses[n % statuses.length] ?? null;
    const lists = sessionLists(generatedOrganization, status, labels[n % labels.length] ?? []);
    const offset = Math.floor(((n * 7919) % count) * (OFFSET_MAX / count));
    trips.push(await timeAnswer(views, () => views.redis.ping()));
    pages.push(await timeAnswer(views, () => views.page(id, { lists, offset, limit: 20 })));
  }
  return { trip: summarize(trips), page: summarize(pages), total };
}

/** Infinite if no answer came within the client's second: the machine was busy with other work. */
async function timeAnswer(views: RedisViews, ask: () => Promise<unknown>): Promise<number> {
  try {
    return (await timed(ask)).ms;
  } catch {
    await eventually(() => views.isReachable(), 'it is reached again');
    return Infinity;
  }
}
