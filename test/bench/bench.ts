/**
 * `npm run bench`: measures the service, beside the limit of the same operation in the same run.
 * Ratios are the meaningful figures; milliseconds and requests a second are this machine's. `npm
 * run bench -- lifecycle gateway control-plane` picks sections; `BENCH_ROUNDS` sets the rounds of
 * each lifecycle figure (default 20), `BENCH_EVENTS` the number of events that `rebuild` reads
 * (default a million), `BENCH_SESSIONS` the numbers of ended sessions that `growth` compares
 * (default 0,20000); `archive` takes the last of them.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { ensurePrograms } from '#src/embedded/programs.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';
import { benchArchive } from './growth/archive.ts';
import { measureApiContention, measureContention } from './contention.ts';
import { load, prepare, type Throughput } from './control-plane.ts';
import { traceCreates } from './create/create-trace.ts';
import { benchDocker } from './docker.ts';
import { measureFeed, startApart } from './feed.ts';
import { measureGateway } from './gateway.ts';
import {
  measureBare,
  measureBursts,
  measureCold,
  measureLives,
  measureTogether,
  type Programs,
} from './lifecycle.ts';
import { benchGrowth } from './growth/growth.ts';
import { benchPool } from './pool.ts';
import { benchRebuild } from './rebuild.ts';
import { benchStrangers } from './strangers.ts';
import { atLeast, atMost, row, type Verdict } from './samples.ts';
import { measureBareLife, measureSessionLife } from './whole-life.ts';

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 20);
const TOGETHER = 4;
/** Load tests need limits that they do not reach. */
const TIERS = JSON.stringify({
  max: { requests_per_minute: 1e9, concurrent_sessions: 1e5, credits: 1e9 },
});

function print(line = ''): void {
  process.stdout.write(`${line}\n`);
}

async function withService<Result>(
  env: Record<string, string>,
  measure: (service: RunningService) => Promise<Result>,
): Promise<Result> {
  await using service = await startService(env);
  return await measure(service);
}

async function benchLifecycle(programs: Programs): Promise<Verdict[]> {
  const real = { BROWSERS: 'process', TIERS, POOL_MAX: '10' };
  print(`milliseconds${' '.repeat(32)}      p50      p95      p99     n`);
  const headless = await measureBare(programs, 'headless', ROUNDS);
  print(row('bare headless Chromium: launch → first reply', headless.launch));
  const headful = await measureBare(programs, 'headful', ROUNDS);
  print(row('bare headful + X server: launch → first reply', headful.launch));
  print(row('bare headful: exit', headful.exit));
  const one = { ...real, POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1' };
  const lives = await withService(one, (service) => measureLives(service, ROUNDS));
  print(row('create, warm: POST → active', lives.create));
  print(row('create, warm: POST → first CDP reply', lives.firstReply));
  print(row('release: DELETE → answer', lives.release));
  print(row("release: DELETE → client's CDP socket closed", lives.socketClosed));
  print(row('release: DELETE → a browser waits again', lives.capacityBack));
  const none = { ...real, POOL_MIN_IDLE: '0', POOL_MAX_IDLE: '0' };
  const coldReply = await withService(none, (service) => measureCold(service, ROUNDS));
  print(row('create, cold: POST → first CDP reply', coldReply));
  const bareTogether = await measureBare(programs, 'headless', Math.ceil(ROUNDS / 4), TOGETHER);
  print(row(`bare headless, ${TOGETHER} at once: → first reply`, bareTogether.launch));
  const four = { ...real, POOL_MIN_IDLE: `${TOGETHER}`, POOL_MAX_IDLE: `${TOGETHER}` };
  const together = await withService(four, (service) =>
    measureTogether(service, TOGETHER, Math.ceil(ROUNDS / 4)),
  );
  print(row(`create, warm, ${TOGETHER} at once: → first CDP reply`, together));
  const asShipped = { BROWSERS: 'process', TIERS };
  const bursts = await withService(asShipped, (service) =>
    measureBursts(service, TOGETHER, Math.ceil(ROUNDS / 4)),
  );
  print(row(`create, default pool, ${TOGETHER} at once again: → reply`, bursts));
  const wholes = await compareWholeLives(programs, real);
  const bare = headless.launch.p50;
  const turnover = headful.exit.p50 + headful.launch.p50;
  return [
    atMost('warm create p50 ÷ bare headless launch', lives.create.p50 / bare, 0.04),
    atMost('warm create p95 ÷ bare headless launch', lives.create.p95 / bare, 0.08),
    atMost('warm create → first reply p50 ÷ bare headless', lives.firstReply.p50 / bare, 0.05),
    atMost('warm create → first reply p95 ÷ bare headless', lives.firstReply.p95 / bare, 0.1),
    atMost('4 at once p95 ÷ bare 4 at once p50', together.p95 / bareTogether.launch.p50, 0.06),
    atMost('cold → first reply ÷ bare headful', coldReply.p50 / headful.launch.p50, 1.15),
    atMost('release answered ÷ bare exit', lives.release.p50 / headful.exit.p50, 0.08),
    atMost('socket closed ÷ bare exit', lives.socketClosed.p50 / headful.exit.p50, 0.15),
    atMost('capacity back ÷ (exit + launch)', lives.capacityBack.p50 / turnover, 1.3),
    atMost('default pool, 4 at once again p95 ÷ bare', bursts.p95 / bareTogether.launch.p50, 0.1),
    ...wholes,
  ];
}

/** Whole lives (create, one page, stop) beside those of bare Chromium with its X server. */
async function compareWholeLives(
  programs: Programs,
  env: Record<string, string>,
): Promise<Verdict[]> {
  print(`\nwhole life of one browser${' '.repeat(19)}   cpu s  bare s  PSS MiB  bare MiB`);
  const verdicts: Verdict[] = [];
  for (const atOnce of [1, TOGETHER, 10]) {
    const rounds = Math.ceil(ROUNDS / Math.min(4, atOnce));
    const bare = await measureBareLife(programs, atOnce, rounds);
    const pool = { POOL_MIN_IDLE: `${atOnce}`, POOL_MAX_IDLE: `${atOnce}`, POOL_MAX: '20' };
    const session = await withService({ ...env, ...pool }, (service) =>
      measureSessionLife(service, atOnce, rounds),
    );
    const [cpu, bareCpu] = [session.cpuSeconds.toFixed(2), bare.cpuSeconds.toFixed(2)];
    const [pss, barePss] = [session.pssMib.toFixed(0), bare.pssMib.toFixed(0)];
    const cells = [cpu.padStart(8), bareCpu.padStart(8), pss.padStart(9), barePss.padStart(10)];
    print(`${`${atOnce} at once`.padEnd(44)}${cells.join('')}`);
    const { cpuSeconds, pssMib } = session;
    verdicts.push(
      atMost(`processor time, ${atOnce} at once ÷ bare`, cpuSeconds / bare.cpuSeconds, 1.1),
      atMost(`memory, ${atOnce} at once ÷ bare`, pssMib / bare.pssMib, 1.1),
    );
  }
  return verdicts;
}

async function benchGateway(): Promise<Verdict[]> {
  const env = { BROWSERS: 'process', TIERS };
  const { direct, gateway } = await withService(env, (service) => measureGateway(service, 10));
  print(row('CDP round trip, straight', direct));
  print(row('CDP round trip, through the gateway', gateway));
  return [
    atMost('gateway adds to p50, ms', gateway.p50 - direct.p50, 0.1),
    atMost('gateway adds to p99, ms', gateway.p99 - direct.p99, 1.5),
  ];
}

async function benchControlPlane(): Promise<Verdict[]> {
  const bare = spawn(
    process.execPath,
    [fileURLToPath(new URL('bare-fastify.ts', import.meta.url))],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const [printed] = (await once(bare.stdout, 'data')) as [Buffer];
  const service = await startService({
    TIERS,
    POOL_MAX: '60',
    POOL_MIN_IDLE: '4',
    POOL_MAX_IDLE: '4',
    LOG_LEVEL: 'warn',
  });
  try {
    const id = await prepare(service, 100);
    const paths = {
      fastify: printed.toString().trim(),
      health: `${service.apiUrl}/api/health`,
      session: `${service.apiUrl}/api/sessions/${id}`,
      list: `${service.apiUrl}/api/sessions?limit=20`,
    };
    print(`\nrequests a second${' '.repeat(27)}     mean  p50 ms  p99 ms errors`);
    const measured = {} as Record<keyof typeof paths, Throughput>;
    for (const [name, url] of Object.entries(paths)) {
      await load(url, 1);
      const one = await load(url);
      measured[name as keyof typeof paths] = one;
      const figures = [one.perSecond.toFixed(0), one.p50.toFixed(1), one.p99.toFixed(1)];
      const cells = [...figures, String(one.errors)].map((cell) => cell.padStart(8));
      print(`${name.padEnd(44)}${cells.join('')}`);
    }
    const limit = measured.fastify.perSecond;
    return [
      atLeast('GET /api/health ÷ bare Fastify', measured.health.perSecond / limit, 0.6),
      atLeast('GET /api/sessions/{id} ÷ bare Fastify', measured.session.perSecond / limit, 0.28),
      atLeast('GET /api/sessions?limit=20 ÷ bare Fastify', measured.list.perSecond / limit, 0.14),
    ];
  } finally {
    await service[Symbol.asyncDispose]();
    bare.kill();
  }
}

async function benchContention(): Promise<Verdict[]> {
  const measured = await measureContention();
  const api = await measureApiContention();
  const rows: [string, number][] = [
    ['bare atomic batches of two, many at once', measured.bare],
    ['bare atomic batches of two, one by one', measured.bareSequential],
    ['creates on one organization, one process', measured.oneProcess],
    ['creates on one organization, two contending', measured.twoProcesses],
    [`creates through the API (${api.answers})`, api.perSecond],
  ];
  print('a second');
  for (const [name, rate] of rows) print(`${name.padEnd(56)}${rate.toFixed(0).padStart(8)}`);
  const { bare } = measured;
  return [
    atLeast('creates of one process ÷ bare batches', measured.oneProcess / bare, 0.34),
    atLeast('creates of two processes ÷ bare batches', measured.twoProcesses / bare, 0.34),
  ];
}

async function benchFeed(): Promise<Verdict[]> {
  await using apart = await startApart();
  const load = { clients: 200, createsPerSecond: 10, seconds: 20 };
  const { core, append, ratio, events, wrong } = await measureFeed(apart, load);
  print(
    `200 streams of one process, ${events} events; streams that missed or doubled one: ${wrong}`,
  );
  print(row('NATS itself: publish → subscriber', core));
  print(row('append → client', append));
  return [atMost('append → client p50 ÷ NATS publish → subscriber', ratio, 10)];
}

const { chromium, Xtigervnc } = await ensurePrograms(['chromium', 'Xtigervnc'], print);
const sections: Record<string, () => Promise<Verdict[]>> = {
  lifecycle: () => benchLifecycle({ chromium, xvnc: Xtigervnc }),
  create: () => traceCreates(print, { rounds: ROUNDS, env: { BROWSERS: 'process', TIERS } }),
  gateway: benchGateway,
  'control-plane': benchControlPlane,
  contention: benchContention,
  feed: benchFeed,
  rebuild: () => benchRebuild(print),
  growth: () => benchGrowth(print),
  archive: () => benchArchive(print),
  strangers: () => benchStrangers(print),
  pool: async () => benchPool(print),
  docker: () => benchDocker(print, { rounds: ROUNDS, tiers: TIERS }),
};
const asked = process.argv.slice(2);
const unknown = asked.find((name) => !(name in sections));
if (unknown !== undefined)
  throw new Error(`no section ${unknown}: ${Object.keys(sections).join(', ')}`);

const machine = `${cpus()[0]?.model}, ${availableParallelism()} cores, Node ${process.version}`;
print(`${new Date().toISOString()}  ${machine}\n`);
const verdicts: Verdict[] = [];
for (const [name, measure] of Object.entries(sections))
  if (asked.length === 0 || asked.includes(name)) verdicts.push(...(await measure()));
print(`\n${'ratio'.padEnd(48)}measured    goal`);
for (const { name, ratio, goal, isMet } of verdicts) {
  const cells = [ratio.toFixed(3).padStart(9), String(goal).padStart(8), isMet ? 'met' : 'NOT MET'];
  print(`${name.padEnd(47)}${cells[0]}${cells[1]}  ${cells[2]}`);
}
