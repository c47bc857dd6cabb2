/**
 * `npm run bench`: measures the service, beside the limit of the same operation in the same run.
 * Ratios are the meaningful figures; milliseconds and requests a second are this machine's. `npm
 * run bench -- lifecycle gateway control-plane` picks sections. `BENCH_RUNS` repeats them and
 * prints each ratio's median and spread. `BENCH_ROUNDS` sets the rounds of each lifecycle figure
 * (default 20), `BENCH_EVENTS` the number of events that `rebuild` reads (default a million),
 * `BENCH_SESSIONS` the numbers of ended sessions that `growth` compares (default 0,20000);
 * `archive` takes the last of them. `BROWSERARENA` is the checkout of its harness. `BENCH_MAIN` is
 * `src/main.ts` of another release for `profile`.
 */
import { availableParallelism, cpus } from 'node:os';
import { ensurePrograms } from '#src/start/embedded/install/programs.ts';
import { benchBareCreate } from './bare-create/bare-create.ts';
import { benchBrowserArena } from './browserarena/browserarena.ts';
import { measureApiContention, measureContention } from './contention.ts';
import { benchControlPlane } from './control-plane/control-plane.ts';
import { traceCreates } from './create/create-trace.ts';
import { profileCreates } from './create/profile.ts';
import { benchDashboard } from './dashboard/dashboard-bench.ts';
import { benchDocker } from './docker.ts';
import { measureFeed, startApart } from './feed.ts';
import { measureGateway } from './gateway.ts';
import { benchKubernetes } from './kubernetes.ts';
import { benchArchive } from './growth/archive.ts';
import { benchFleet } from './fleet/fleet.ts';
import { benchIdle } from './idle/idle.ts';
import { benchGrowth } from './growth/growth.ts';
import { startProbe, type Probe } from './harness/probe.ts';
import { printVerdicts } from './harness/report.ts';
import { benchBursts } from './lifecycle/bench-bursts.ts';
import { benchLifecycle } from './lifecycle/bench-lifecycle.ts';
import { benchFlags } from './lifecycle/flags.ts';
import { benchWholeLife } from './lifecycle/whole-life.ts';
import { benchBssStart } from './many/bss-start.ts';
import { benchEvents } from './many/events.ts';
import { benchMany } from './many/many.ts';
import { benchOneCall } from './one-call.ts';
import { benchPool } from './pool.ts';
import { benchProfiles } from './profiles.ts';
import { benchRebuild } from './rebuild.ts';
import { benchRecording } from './recording.ts';
import { benchStart } from './start/start.ts';
import { benchStrangers } from './strangers.ts';
import { atLeast, atMost, row, type Verdict } from './samples.ts';
import { withService } from './sessions.ts';

const RUNS = Number(process.env['BENCH_RUNS'] ?? 1);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 20);
/** Readings of the machine before and after each section. */
const PROBES = 5;
/** Load tests need limits that they do not reach. */
const TIERS = JSON.stringify({
  max: { requests_per_minute: 1e9, concurrent_sessions: 1e5, credits: 1e9 },
});

function print(line = ''): void {
  process.stdout.write(`${line}\n`);
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

const programs = ['chromium', 'Xtigervnc', 'nats-server', 'redis-server'] as const;
const { chromium, Xtigervnc, ...servers } = await ensurePrograms([...programs], print);
process.env['CHROMIUM'] ??= chromium;
process.env['NATS_SERVER'] ??= servers['nats-server'];
process.env['REDIS_SERVER'] ??= servers['redis-server'];
const browsers = {
  programs: { chromium, xvnc: Xtigervnc },
  env: { BROWSERS: 'process', TIERS, POOL_MAX: '10' },
  rounds: ROUNDS,
  print,
};
const sections: Record<string, (probe: Probe) => Promise<Verdict[]>> = {
  lifecycle: (probe) => benchLifecycle(browsers, probe),
  bursts: (probe) => benchBursts(browsers, probe),
  'whole-life': (probe) => benchWholeLife(browsers, probe),
  flags: (probe) => benchFlags(browsers, probe),
  create: () => traceCreates(print, { rounds: ROUNDS, env: { BROWSERS: 'process', TIERS } }),
  'bare-create': (probe) => benchBareCreate(browsers, probe),
  profile: () => profileCreates(print, { TIERS }),
  gateway: benchGateway,
  'control-plane': (probe) => benchControlPlane(print, { TIERS }, probe),
  contention: benchContention,
  feed: benchFeed,
  rebuild: () => benchRebuild(print),
  growth: () => benchGrowth(print),
  archive: () => benchArchive(print),
  strangers: () => benchStrangers(print),
  start: () => benchStart(print),
  idle: () => benchIdle(print),
  recording: () => benchRecording(print, { TIERS }),
  pool: async () => benchPool(print),
  profiles: (probe) => benchProfiles(print, { rounds: ROUNDS, tiers: TIERS }, probe),
  'one-call': (probe) => benchOneCall(print, { rounds: ROUNDS, tiers: TIERS }, probe),
  docker: () => benchDocker(print, { rounds: ROUNDS, tiers: TIERS }),
  kubernetes: () => benchKubernetes(print, { rounds: ROUNDS, tiers: TIERS }),
  dashboard: () => benchDashboard(print),
  events: () => benchEvents(print),
  'bss-start': () => benchBssStart(print),
  many: () => benchMany(print, TIERS),
  fleet: () => benchFleet(print, TIERS),
  browserarena: () => benchBrowserArena(browsers),
};

/** The section's ratios, and whether the machine was steady meanwhile. */
async function measureSection(name: string): Promise<{ verdicts: Verdict[]; isSteady: boolean }> {
  await using probe = await startProbe();
  const takeSome = async () => {
    for (let taken = 0; taken < PROBES; taken += 1) await probe.take();
  };
  print(`\n== ${name}`);
  await takeSome();
  const verdicts = await sections[name]?.(probe);
  await takeSome();
  const { line, isSteady } = await probe.report();
  print(line);
  return { verdicts: verdicts ?? [], isSteady };
}

const asked = process.argv.slice(2);
const unknown = asked.find((name) => !(name in sections));
if (unknown !== undefined)
  throw new Error(`no section ${unknown}: ${Object.keys(sections).join(', ')}`);

const machine = `${cpus()[0]?.model}, ${availableParallelism()} cores, Node ${process.version}`;
print(`${new Date().toISOString()}  ${machine}; Chromium is ${chromium}`);
const runs: Verdict[][] = [];
const unsteady: string[] = [];
for (let run = 1; run <= RUNS; run += 1) {
  const verdicts: Verdict[] = [];
  for (const name of Object.keys(sections)) {
    if (asked.length > 0 && !asked.includes(name)) continue;
    const measured = await measureSection(name);
    verdicts.push(...measured.verdicts);
    if (!measured.isSteady) unsteady.push(`${name} of run ${run}`);
  }
  runs.push(verdicts);
  if (RUNS > 1) print(`\nrun ${run} of ${RUNS} has ended`);
}
process.exitCode = printVerdicts(print, runs) ? 0 : 1;
if (unsteady.length > 0) print(`\nOn an unsteady machine: ${unsteady.join(', ')}`);
