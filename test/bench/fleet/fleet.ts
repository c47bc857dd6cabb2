import { availableParallelism } from 'node:os';
import { EVENTS_STREAM, TIMERS_STREAM } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { startNatsCluster } from '#test/support/servers/nats-cluster.ts';
import type { RunningService } from '#test/support/service/service.ts';
import { bareBatchesPerSecond } from '../contention.ts';
import { atLeast, atMost, row, summarize, timed, type Verdict } from '../samples.ts';
import { followEnds, type Ends } from './ends.ts';
import { cpuByPart, memoryOf, startFleet, type Fleet, type Part } from './fleet-service.ts';

const SERVERS = 50;
const AT_ONCE = 300;
const IDLE_PER_SERVER = AT_ONCE / SERVERS;
/**
 * Sessions that live at once while creates are sustained, until their browsers are gone: a client
 * that went on at the answer to its stop would leave ever more browsers to end behind it.
 */
const IN_FLIGHT = 16;
const WARM_UP_ROUNDS = 5;
const SECONDS = Number(process.env['BENCH_FLEET_SECONDS'] ?? 300);
const LOOK_EVERY_MS = 2_000;
/** A machine that is busier than this is the bound itself. */
const BUSY = 0.9;
/** Of a read model, at which lists still answer: projections/README.md. */
const LAG_MAX_SECONDS = 10;
const KIB = 1024;

/** `busy`: of the whole machine, 0 to 1; `failed`: sessions. */
type Sustained = { perSecond: number; busy: number; failed: number };

/**
 * A fleet on three NATS nodes: creates at once and sustained, whether those that follow the events
 * keep up, what a session costs, and what bounds it; with one and with two processes of each role.
 */
export async function benchFleet(
  print: (line?: string) => void,
  tiers: string,
): Promise<Verdict[]> {
  const bare = await measureBare();
  const size = { servers: SERVERS, idlePerServer: IDLE_PER_SERVER };
  const one = await withFleet({ ...size, each: 1 }, tiers, (fleet) => sustain(fleet, print, 'one'));
  const { verdicts, two } = await withFleet({ ...size, each: 2 }, tiers, async (fleet) => {
    const atOnce = await measureAtOnce(fleet, bare, print);
    return { verdicts: atOnce, two: await sustain(fleet, print, 'two') };
  });
  verdicts.push(atMost('sessions that failed', one.failed + two.failed, 0));
  const gain = two.perSecond / one.perSecond;
  print(`\ntwo processes of each role ÷ one: ${gain.toFixed(2)}`);
  // Where one process of each uses up the machine, more of them have nothing to gain.
  if (one.busy < BUSY) verdicts.push(atLeast('two of each role ÷ one, creates', gain, 1.6));
  else print(`the bound of one of each role is this machine: ${percent(one.busy)} busy`);
  return verdicts;
}

async function withFleet<Result>(
  size: Parameters<typeof startFleet>[0],
  tiers: string,
  measure: (fleet: Fleet) => Promise<Result>,
): Promise<Result> {
  await using fleet = await startFleet(size, tiers);
  return await measure(fleet);
}

/**
 * Bare batches a second, on three nodes of their own: in the fleet's event store they would be
 * requests that its servers serve.
 */
async function measureBare(): Promise<number> {
  await using cluster = await startNatsCluster();
  const tls = { caFile: cluster.caFile };
  await using connection = await connectJetStream({ url: cluster.urlOf('service'), tls });
  return await bareBatchesPerSecond(connection.nc, AT_ONCE);
}

/** Creates that all arrive at once, each on an idle browser, beside bare batches. */
async function measureAtOnce(
  fleet: Fleet,
  bare: number,
  print: (line?: string) => void,
): Promise<Verdict[]> {
  await using connection = await connect(fleet);
  const before = await countEvents(connection);
  const memory = await memoryOf(fleet, 'servers');
  const used = await measureUse(fleet);
  const begunAt = performance.now();
  const made = await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, at) => {
      const id = await create(apiOf(fleet, at));
      return { id, ms: performance.now() - begunAt };
    }),
  );
  const { busy, told } = await used();
  const times = made.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const [first = 0, half = 0, all = 0] = [0, AT_ONCE / 2, AT_ONCE - 1].map((at) => times[at]);
  const grown = (await memoryOf(fleet, 'servers')) - memory;
  print(`\n${AT_ONCE} creates at once on ${SERVERS} servers, three NATS nodes, three replicas`);
  const whole = (value: number) => value.toFixed(0);
  print(`active after ms: the first ${whole(first)}, half ${whole(half)}, all ${whole(all)}`);
  print(told);
  await Promise.all(made.map(({ id }, at) => stop(apiOf(fleet, at), id)));
  const events = ((await countEvents(connection)) - before) / AT_ONCE;
  const kib = whole((grown * KIB) / AT_ONCE);
  print(`a session: ${events.toFixed(1)} events, ${kib} KiB of its server`);
  const bareMs = (1000 * AT_ONCE) / bare;
  print(`${AT_ONCE} bare batches of two on three such nodes: ${bareMs.toFixed(0)} ms`);
  print(`all active ÷ as many bare batches: ${(all / bareMs).toFixed(1)}`);
  if (busy < BUSY) return [atMost('all active ÷ as many bare batches', all / bareMs, 20)];
  print(`the bound is this machine: ${percent(busy)} busy`);
  return [];
}

/** Creates and stops as fast as they go, for a while. */
async function sustain(
  fleet: Fleet,
  print: (line?: string) => void,
  name: string,
): Promise<Sustained> {
  await using connection = await connect(fleet);
  await using ends = await followEnds(connection);
  await warmUp(fleet, ends);
  const used = await measureUse(fleet);
  const begunAt = performance.now();
  const end = begunAt + 1000 * SECONDS;
  const creates: number[] = [];
  const stops: number[] = [];
  const endings: number[] = [];
  const lag = watchLag(fleet, connection, end);
  // A create that fails closes its connection, and has the error that matters.
  lag.catch(() => undefined);
  const live = async (at: number) => {
    while (performance.now() < end) {
      const api = apiOf(fleet, at);
      const { ms, result: id } = await timed(() => create(api));
      creates.push(ms);
      const ended = ends.of(id);
      stops.push((await timed(() => stop(api, id))).ms);
      endings.push((await timed(() => ended)).ms);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, (_, at) => live(at)));
  const seconds = (performance.now() - begunAt) / 1000;
  const { busy, told } = await used();
  const perSecond = creates.length / seconds;
  print(`\n${name} of each role, ${IN_FLIGHT} clients for ${seconds.toFixed(0)} s`);
  print(`creates a second, each stopped at once and ended: ${perSecond.toFixed(1)}`);
  print(`milliseconds${' '.repeat(32)}      p50      p95      p99     n`);
  print(row('create', summarize(creates)));
  print(row('stop', summarize(stops)));
  print(row('stop answered → ended', summarize(endings)));
  print(`sessions that failed: ${ends.failed()}`);
  const { projectorSeconds, pending } = await lag;
  print(`most lag of a projector ${projectorSeconds.toFixed(1)} s; most items that wait: `);
  for (const [consumer, most] of pending) print(`  ${consumer.padEnd(24)}${most}`);
  print(told);
  if (projectorSeconds > LAG_MAX_SECONDS) print('the projector does not keep up');
  return { perSecond, busy, failed: ends.failed() };
}

/** @returns what the fleet's parts have used since, as a line, and their share of the machine */
async function measureUse(fleet: Fleet): Promise<() => Promise<{ busy: number; told: string }>> {
  const cores = availableParallelism();
  const before = await cpuByPart(fleet);
  const begunAt = performance.now();
  return async () => {
    const seconds = (performance.now() - begunAt) / 1000;
    const used = [...(await cpuByPart(fleet))].map(([part, now]): [Part, number] => [
      part,
      (now - (before.get(part) ?? 0)) / seconds,
    ]);
    const busy = used.reduce((sum, [, share]) => sum + share, 0) / cores;
    const shares = used.map(([part, share]) => `${part} ${share.toFixed(2)}`).join(', ');
    return { busy, told: `cores of ${cores}: ${shares}` };
  };
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

/** The code of a new process is not compiled yet: its first creates tell nothing of the later. */
async function warmUp(fleet: Fleet, ends: Ends): Promise<void> {
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1)
    await Promise.all(
      Array.from({ length: IN_FLIGHT }, async (_, at) => {
        const api = apiOf(fleet, at);
        const id = await create(api);
        const ended = ends.of(id);
        await stop(api, id);
        await ended;
      }),
    );
}

/** The most that projectors, provisioners and timekeepers are behind, until the given time. */
async function watchLag(fleet: Fleet, { jsm }: JetStreamConnection, end: number) {
  let projectorSeconds = 0;
  const pending = new Map<string, number>();
  while (performance.now() < end) {
    for (const url of fleet.metricsUrls) {
      const text = await fetch(url).then((answer) => answer.text());
      for (const [, value] of text.matchAll(/^bss_projection_lag_seconds\{.*\} (\S+)$/gm))
        projectorSeconds = Math.max(projectorSeconds, Number(value) || 0);
    }
    for (const [stream, consumer] of CONSUMERS) {
      const info = await jsm.consumers.info(stream, consumer);
      const now = info.num_pending + info.num_ack_pending;
      const name = `${stream} ${consumer}`;
      pending.set(name, Math.max(pending.get(name) ?? 0, now));
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  return { projectorSeconds, pending };
}

const CONSUMERS = [
  [EVENTS_STREAM, 'provisioner'],
  [EVENTS_STREAM, 'timekeeper'],
  [TIMERS_STREAM, 'timekeeper'],
] as const;

function connect({ cluster }: Fleet): Promise<JetStreamConnection> {
  const tls = { caFile: cluster.caFile };
  return connectJetStream({ url: cluster.urlOf('service'), tls, makesStreams: false });
}

async function countEvents({ jsm }: JetStreamConnection): Promise<number> {
  return (await jsm.streams.info(EVENTS_STREAM)).state.last_seq;
}

function apiOf({ apis }: Fleet, at: number): RunningService {
  return apis[at % apis.length] as RunningService;
}

async function create(api: RunningService): Promise<string> {
  const { status, body } = await api.request('POST', '/api/sessions', { duration: '10m' });
  if (status !== 201 || body.status !== 'active')
    throw new Error(`create: ${status} ${JSON.stringify(body)}`);
  return body.id as string;
}

async function stop(api: RunningService, id: string): Promise<void> {
  const { status } = await api.request('DELETE', `/api/sessions/${id}`);
  if (status >= 300) throw new Error(`stop: ${status}`);
}
