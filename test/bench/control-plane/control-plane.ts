import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { descendantsOf } from '#test/support/service/processes.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';
import { createFigures, interleave } from '../harness/interleave.ts';
import type { Probe } from '../harness/probe.ts';
import { send } from '../http-client.ts';
import { cpuOf, runApart } from '../run-apart.ts';
import { atLeast, atMost, type Verdict } from '../samples.ts';
import type { Load } from './load.ts';

/** Rounds of all addresses, and the time of each load. */
const ROUNDS = 3;
const SECONDS = 3;
const WARM_UP_SECONDS = 2;
const SESSIONS = 100;
const LIST = '/api/sessions?limit=20';
const programAt = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** What is loaded, and the processes that answer it. */
type Target = { name: string; url: string; server: number; stores: readonly number[] };

/**
 * Requests a second and processor time per request, beside Fastify with one route: both servers and
 * the client in processes of their own, in turns.
 */
export async function benchControlPlane(
  print: (line?: string) => void,
  env: Record<string, string>,
  probe: Probe,
): Promise<Verdict[]> {
  await using fastify = await startFastify();
  await using service = await startService({
    ...env,
    POOL_MAX: '60',
    POOL_MIN_IDLE: '4',
    POOL_MAX_IDLE: '4',
    LOG_LEVEL: 'warn',
  });
  const id = await prepare(service);
  const list = await send('GET', `${service.apiUrl}${LIST}`);
  const pageUrl = `${fastify.url}text/${list.text.length}`;
  const targets = [
    { name: 'fastify', url: fastify.url, server: fastify.pid, stores: [] },
    { name: 'page', url: pageUrl, server: fastify.pid, stores: [] },
    ...routesOf(service, id),
  ];
  for (const { url } of targets) await load(url, WARM_UP_SECONDS);
  const figures = createFigures<string>();
  const steps = targets.map((target) => async () => {
    const { perSecond, mean, p99, serverUs, storesUs } = await measure(target);
    const measured = { perSecond, mean, p99, serverUs, storesUs };
    for (const [figure, value] of Object.entries(measured))
      figures.add(`${target.name} ${figure}`, value);
  });
  await interleave(steps, ROUNDS, () => probe.take());
  const median = (name: string, figure: string) => figures.of(`${name} ${figure}`).p50;
  print(
    `\nmedians of ${ROUNDS}`.padEnd(33) + COLUMNS.map(([, head]) => head.padStart(12)).join(''),
  );
  for (const { name } of targets) {
    const cells = COLUMNS.map(([figure, , digits]) => median(name, figure).toFixed(digits));
    print(`${name.padEnd(32)}${cells.map((cell) => cell.padStart(12)).join('')}`);
  }
  const rate = (name: string) => median(name, 'perSecond') / median('fastify', 'perSecond');
  const cost = (name: string) => median(name, 'serverUs') / median('fastify', 'serverUs');
  printPage(print, list.text.length, { rate, cost });
  return [
    atLeast('GET /api/health ÷ bare Fastify', rate('health'), 0.6, 'Steel 0.39'),
    atLeast('GET /api/sessions/{id} ÷ bare Fastify', rate('session'), 0.33),
    atLeast('GET /api/sessions?limit=20 ÷ bare Fastify', rate('list'), 0.22, PEERS_LIST),
    atMost('processor time, /{id} ÷ bare Fastify', cost('session'), 3),
    atMost('processor time, ?limit=20 ÷ bare Fastify', cost('list'), 3, 'Steel 21, unpaged'),
  ];
}

/** What a page's length alone costs: bare Fastify answering as many bytes, always the same. */
function printPage(
  print: (line?: string) => void,
  bytes: number,
  { rate, cost }: Record<'rate' | 'cost', (name: string) => number>,
): void {
  print(`\nwithout a goal: page is bare Fastify with a text of ${bytes} bytes, as long as list's`);
  for (const [name, ofPage, ofList] of [
    ['requests a second', rate('page'), rate('list')],
    ['processor time', cost('page'), cost('list')],
  ] as const) {
    const share = (ofList / ofPage).toFixed(3);
    print(`${name.padEnd(20)}page ÷ bare Fastify ${ofPage.toFixed(3)}   list ÷ page ${share}`);
  }
}

const PEERS_LIST = 'Steel 0.05 to 0.10, unpaged';
const COLUMNS: readonly [figure: string, head: string, digits: number][] = [
  ['perSecond', 'requests/s', 0],
  ['mean', 'mean ms', 2],
  ['p99', 'p99 ms', 1],
  ['serverUs', 'cpu µs', 1],
  ['storesUs', 'stores µs', 1],
];

async function startFastify(): Promise<{ url: string; pid: number } & AsyncDisposable> {
  const server = spawn(process.execPath, [programAt('bare-fastify.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [printed] = (await once(server.stdout, 'data')) as [Buffer];
  const gone = once(server, 'exit');
  return {
    url: printed.toString().trim(),
    pid: server.pid ?? 0,
    async [Symbol.asyncDispose]() {
      server.kill();
      await gone;
    },
  };
}

/** A session to read and a list to page through; all but the first are stopped. @returns its id */
async function prepare(service: RunningService): Promise<string> {
  const { body } = await service.request('POST', '/api/sessions', {});
  for (let made = 1; made < SESSIONS; made += 1) {
    const { body: more } = await service.request('POST', '/api/sessions', {});
    await service.request('DELETE', `/api/sessions/${more.id}`);
  }
  return body.id as string;
}

function routesOf(service: RunningService, id: string): Target[] {
  const isStore = (command: string) => /nats-server|redis-server/.test(command);
  const below = descendantsOf(service.pid);
  const stores = below.filter(({ command }) => isStore(command)).map(({ pid }) => pid);
  const server = { server: service.pid, stores };
  const url = `${service.apiUrl}/api`;
  return [
    { name: 'health', url: `${url}/health`, ...server },
    { name: 'session', url: `${url}/sessions/${id}`, ...server },
    { name: 'list', url: `${service.apiUrl}${LIST}`, ...server },
  ];
}

/** One load, with the processor time that each request took of the server and of its stores. */
async function measure({ url, server, stores }: Target) {
  const before = await cpuOfAll([server], stores);
  const loaded = await load(url, SECONDS);
  const after = await cpuOfAll([server], stores);
  const perRequest = (seconds: number) => (1e6 * seconds) / loaded.requests;
  return {
    ...loaded,
    serverUs: perRequest(after.server - before.server),
    storesUs: perRequest(after.stores - before.stores),
  };
}

async function cpuOfAll(server: readonly number[], stores: readonly number[]) {
  const sum = async (pids: readonly number[]) =>
    (await Promise.all(pids.map(cpuOf))).reduce((all, seconds) => all + seconds, 0);
  return { server: await sum(server), stores: await sum(stores) };
}

async function load(url: string, seconds: number): Promise<Load> {
  const { printed } = await runApart([programAt('load.ts'), url, `${seconds}`]);
  return JSON.parse(printed) as Load;
}
