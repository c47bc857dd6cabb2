import { setTimeout as delay } from 'node:timers/promises';
import { roles } from '#src/kernel/config/config.ts';
import { archiveVariables } from '#src/kernel/config/archive.ts';
import {
  archiveAllBut,
  FULL_KEY,
  openSite,
  processesOf,
  residentMib,
  sizesOf,
  type Site,
} from './site.ts';
import { send } from '../http-client.ts';
import { createSession, stopSession, untilIdle } from '../sessions.ts';
import { cpuOf } from '../run-apart.ts';
import { atMost, summarize, timed, type Samples, type Verdict } from '../samples.ts';

/** Numbers of ended sessions; the others are compared with the first. */
const SIZES = (process.env['BENCH_SESSIONS'] ?? '0,20000').split(',').map(Number);
const CREATES = 300;
const READS = 500;
const REFUSALS = 300;
const STARTS = 9;
const WARM_UP = 30;
/** Before the idle processor time is counted: what the probes have begun ends. */
const SETTLE_MS = 10_000;
/** Go's collector runs every two minutes where nothing is asked: two of its runs. */
const IDLE_MS = 240_000;
/** Whether a store keeps all its events; otherwise it keeps what a service does by default. */
const KEEPS_ALL = process.env['BENCH_KEEP'] === 'all';
/** An archivist archives the oldest events of more than these. */
const KEPT = Number(archiveVariables.RETAIN_EVENTS_MAX.fallback);
const P50_MAX = 1.1;
const P95_MAX = 1.3;
const START_MAX = 1.2;
const IDLE_PERCENT_MAX = 2;
const NAME_WIDTH = 44;

type Print = (line: string) => void;
/** The milliseconds of one operation, in the order of their measurement. */
type Series = number[];
/** The measurements of one site. */
type Figures = {
  site: Site;
  probes: Map<string, Series>;
  /** Percent of a core by process, while nothing is asked. */
  idle: Record<string, number>;
};

/**
 * Whether the service's ordinary work costs more because more sessions have ended: the same probes
 * on services that differ in the number of their ended sessions, in turns. All run at once, so that
 * other load on the machine meets all of them.
 */
export async function benchGrowth(print: Print): Promise<Verdict[]> {
  await using stack = new AsyncDisposableStack();
  const all: Figures[] = [];
  for (const sessions of SIZES) {
    const site = stack.use(await openSite(sessions, print));
    if (!KEEPS_ALL) await archiveSurplus(site, print);
    all.push({ site, probes: new Map(), idle: {} });
  }
  await measureRequests(all);
  await measureIdle(all);
  await measureStarts(all);
  await printTable(all, print);
  const [base, ...others] = all;
  if (base === undefined) return [];
  return others.flatMap((figures) => verdictsOf(base, figures, print));
}

/** What an archivist with the default configuration takes out of the event store in time. */
async function archiveSurplus(site: Site, print: Print): Promise<void> {
  const { ms, result: run } = await timed(() => archiveAllBut(KEPT, site));
  if (run === null) return;
  const rate = run.sessions / (ms / 1000);
  print(
    `${site.sessions} sessions: ${run.sessions} of them archived in ${(ms / 1000).toFixed(0)} s ` +
      `(${rate.toFixed(0)} a second)`,
  );
}

/** Every round does the same on each site. */
async function inTurns(
  all: readonly Figures[],
  rounds: number,
  probe: (figures: Figures, add: (name: string, ms: number) => void) => Promise<void>,
): Promise<void> {
  for (let round = -WARM_UP; round < rounds; round += 1)
    for (const figures of all)
      await probe(figures, (name, ms) => {
        if (round >= 0) addTo(figures, name, ms);
      });
}

function addTo({ probes }: Figures, name: string, ms: number): void {
  const series = probes.get(name);
  if (series === undefined) probes.set(name, [ms]);
  else series.push(ms);
}

async function measureRequests(all: readonly Figures[]): Promise<void> {
  await inTurns(all, CREATES, async ({ site: { services } }, add) => {
    await untilIdle(services.api, 1);
    const { ms, result } = await timed(() => createSession(services.api));
    add('create', ms);
    add('release', (await timed(() => stopSession(services.api, result.id))).ms);
  });
  const body = '{"duration":"10m"}';
  const full = { authorization: `Bearer ${FULL_KEY}` };
  await inTurns(all, REFUSALS, async ({ site: { services } }, add) => {
    const url = `${services.api.apiUrl}/api/sessions`;
    const { ms, result } = await timed(() => send('POST', url, body, full));
    if (!result.text.includes('SESSION_LIMIT_EXCEEDED')) throw new Error(result.text);
    add('refused create', ms);
  });
  const known = new Map<Figures, string>();
  for (const figures of all) {
    const { id } = await createSession(figures.site.services.api);
    known.set(figures, id);
  }
  await inTurns(all, READS, async (figures, add) => {
    const { apiUrl } = figures.site.services.api;
    add('GET by id', await timeRead(`${apiUrl}/api/sessions/${known.get(figures)}`));
    add('list, page of 20', await timeRead(`${apiUrl}/api/sessions?limit=20`));
  });
  for (const [{ site }, id] of known) await stopSession(site.services.api, id);
}

async function timeRead(url: string): Promise<number> {
  const { ms, result } = await timed(() => send('GET', url));
  if (result.status !== 200) throw new Error(`${url}: ${result.status} ${result.text}`);
  return ms;
}

async function measureIdle(all: readonly Figures[]): Promise<void> {
  await delay(SETTLE_MS);
  const read = ({ site }: Figures) =>
    Promise.all(
      Object.entries(processesOf(site)).map(
        async ([name, pid]) => [name, await cpuOf(pid)] as const,
      ),
    );
  const before = await Promise.all(all.map(read));
  const { ms } = await timed(() => delay(IDLE_MS));
  const after = await Promise.all(all.map(read));
  for (const [at, figures] of all.entries())
    for (const [n, [name, seconds]] of (after[at] ?? []).entries()) {
      const used = seconds - (before[at]?.[n]?.[1] ?? Number.NaN);
      figures.idle[name] = (100 * used) / (ms / 1000);
    }
}

/** From the start of the process to its line `ready`. */
async function measureStarts(all: readonly Figures[]): Promise<void> {
  for (let round = 0; round < STARTS; round += 1)
    for (const role of roles)
      for (const figures of all) {
        const service = figures.site.services[role];
        await service.end('SIGTERM');
        const { ms } = await timed(() => service.startAgain());
        addTo(figures, `start of ${role}`, ms);
      }
}

async function printTable(all: readonly Figures[], print: Print): Promise<void> {
  const line = (name: string, cells: readonly string[]) =>
    print(`${name.padEnd(NAME_WIDTH)}${cells.map((cell) => cell.padStart(16)).join('')}`);
  print('');
  line(
    'ended sessions',
    all.map(({ site }) => String(site.sessions)),
  );
  print('milliseconds, p50 / p95');
  for (const name of all[0]?.probes.keys() ?? []) {
    const samples = all.map((figures) => summaryOf(figures, name));
    const [first] = samples;
    line(
      `${name} (${first?.count})`,
      samples.map(({ p50, p95 }) => `${figure(p50)} / ${figure(p95)}`),
    );
  }
  print('processor without requests, percent of a core');
  for (const name of Object.keys(all[0]?.idle ?? {}))
    line(
      name,
      all.map(({ idle }) => (idle[name] ?? Number.NaN).toFixed(2)),
    );
  print('memory, MiB');
  for (const name of Object.keys(all[0]?.idle ?? {})) {
    const mib = all.map(({ site }) => residentMib(processesOf(site)[name] ?? 0));
    line(
      name,
      (await Promise.all(mib)).map((one) => one.toFixed(0)),
    );
  }
  print('stores');
  const sizes = await Promise.all(all.map(({ site }) => sizesOf(site)));
  for (const name of Object.keys(sizes[0] ?? {}))
    line(
      name,
      sizes.map((one) => (one[name] ?? Number.NaN).toFixed(0)),
    );
  print('');
}

function figure(ms: number): string {
  return ms.toFixed(ms < 100 ? 2 : 0);
}

function summaryOf({ probes }: Figures, name: string): Samples {
  return summarize(probes.get(name) ?? []);
}

function verdictsOf(base: Figures, other: Figures, print: Print): Verdict[] {
  const compared = (name: string, part: 'p50' | 'p95', goal: number) => {
    const ratio = summaryOf(other, name)[part] / summaryOf(base, name)[part];
    const noise = unsteadiness(base.probes.get(name) ?? [], part);
    if (noise > goal)
      print(
        `unsteady: ${name} ${part} of ${base.site.sessions}: halves differ ${noise.toFixed(2)}`,
      );
    return atMost(`${other.site.sessions}: ${name} ${part}`, ratio, goal);
  };
  const idle = (name: string) =>
    atMost(
      `${other.site.sessions}: idle ${name}, more % of a core`,
      (other.idle[name] ?? Number.NaN) - (base.idle[name] ?? Number.NaN),
      IDLE_PERCENT_MAX,
    );
  return [
    compared('create', 'p50', P50_MAX),
    compared('create', 'p95', P95_MAX),
    ...roles.map((role) => compared(`start of ${role}`, 'p50', START_MAX)),
    idle('nats-server'),
    idle('projector'),
  ];
}

/** The first half of the measurements beside the second, the greater ÷ the smaller. */
function unsteadiness(series: Series, part: 'p50' | 'p95'): number {
  const middle = Math.floor(series.length / 2);
  const one = summarize(series.slice(0, middle))[part];
  const two = summarize(series.slice(middle))[part];
  return Math.max(one, two) / Math.min(one, two);
}
