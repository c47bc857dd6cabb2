import { readdir, readFile } from 'node:fs/promises';
import { sleep } from '#src/kernel/async/sleep.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';
import { createSession, stopSession } from '../sessions.ts';
import type { Verdict } from '../samples.ts';
import { INSPECTED, inspect, type Inspector, type ProfileNode } from './inspector.ts';

/** Lives of each profile; twice as many, four at once, warm up before. */
const LIVES = 100;
const AT_ONCE = [1, 4];
const WAITING = 8;
/** Longer than the launch of a simulated browser, and than what comes after an answer. */
const PAUSE_MS = 50;
const IDLE_MS = 5_000;
const LINES = 20;

/**
 * Where the processor time and the memory of a life go, a warm create and its release, by V8's
 * sampling profilers of the service's process. Browsers are simulated, in the same process.
 * `BENCH_MAIN` is `src/main.ts` of another release to profile.
 */
export async function profileCreates(
  print: (line?: string) => void,
  env: Record<string, string>,
): Promise<Verdict[]> {
  const pool = { POOL_MIN_IDLE: `${WAITING}`, POOL_MAX_IDLE: `${WAITING}`, POOL_MAX: '60' };
  const settings = { ...env, ...pool, LOG_LEVEL: 'warn', ...INSPECTED };
  await using service = await startService(settings, { main: process.env['BENCH_MAIN'] });
  using inspector = await inspect(service);
  await live(service, 4, 2 * LIVES);
  const idle = await usageOf(service.pid);
  await sleep(IDLE_MS);
  const { cpuMs } = difference(await usageOf(service.pid), idle);
  print(`without lives: ${((100 * cpuMs) / IDLE_MS).toFixed(1)} % of a core`);
  for (const atOnce of AT_ONCE) {
    print(`\n${LIVES} lives, ${atOnce} at once, of each:`);
    await printUsage(print, service, inspector, atOnce);
    const lives = () => live(service, atOnce, LIVES);
    printProfile(print, 'µs', await inspector.timesOf(lives));
    printProfile(print, 'bytes', await inspector.bytesOf(lives));
  }
  return [];
}

/** What a create and a release take, each with what comes after its answer. */
async function printUsage(
  print: (line?: string) => void,
  service: RunningService,
  { bytesOf }: Inspector,
  atOnce: number,
): Promise<void> {
  const parts = ['create', 'release'] as const;
  const used = { create: [0, 0, 0], release: [0, 0, 0] };
  const note = (part: keyof typeof used, ...amounts: number[]) => {
    used[part] = used[part].map((amount, at) => amount + (amounts[at] ?? 0) / LIVES);
  };
  await live(service, atOnce, LIVES, async (part, work) => {
    const before = await usageOf(service.pid);
    await work();
    const { cpuMs, writes } = difference(await usageOf(service.pid), before);
    note(part, cpuMs, writes);
  });
  await live(service, atOnce, LIVES, async (part, work) =>
    note(part, 0, 0, sumOf(await bytesOf(work))),
  );
  for (const part of parts) {
    const [ms = 0, writes = 0, bytes = 0] = used[part];
    const kb = (bytes / 1_000).toFixed(0);
    print(`${part}: ${ms.toFixed(2)} ms of processor time, ${writes.toFixed(1)} writes, ${kb} KB`);
  }
}

type Around = (part: 'create' | 'release', work: () => Promise<void>) => Promise<void>;

/** Sessions that are created and stopped, some at once; a browser waits for each. */
async function live(
  service: RunningService,
  atOnce: number,
  lives: number,
  around: Around = (_, work) => work(),
): Promise<void> {
  for (let lived = 0; lived < lives; lived += atOnce) {
    let created: { id: string }[] = [];
    await around('create', async () => {
      created = await Promise.all(Array.from({ length: atOnce }, () => createSession(service)));
      await sleep(PAUSE_MS);
    });
    await around('release', async () => {
      await Promise.all(created.map(({ id }) => stopSession(service, id)));
      await sleep(PAUSE_MS);
    });
  }
}

type Usage = { cpuMs: number; writes: number };

/** Processor time of all threads, and system calls that write, to sockets and files. */
async function usageOf(pid: number): Promise<Usage> {
  const tasks = await readdir(`/proc/${pid}/task`);
  const stats = tasks.map((task) => readFile(`/proc/${pid}/task/${task}/schedstat`, 'utf8'));
  const ns = (await Promise.all(stats)).reduce((sum, stat) => sum + Number(stat.split(' ')[0]), 0);
  const io = await readFile(`/proc/${pid}/io`, 'utf8');
  return { cpuMs: ns / 1e6, writes: Number(/^syscw: (\d+)$/m.exec(io)?.[1]) };
}

function difference(after: Usage, before: Usage): Usage {
  return { cpuMs: after.cpuMs - before.cpuMs, writes: after.writes - before.writes };
}

function sumOf({ ofSelf, children }: ProfileNode): number {
  return children.reduce((sum, child) => sum + sumOf(child), ofSelf);
}

/** Of each life: by part, by function, and by function of the service with all that it calls. */
function printProfile(print: (line?: string) => void, unit: string, root: ProfileNode): void {
  const tables = {
    'by part, with what it calls of Node and V8': new Map<string, number>(),
    'by function alone; one of Node or V8 with who called it': new Map<string, number>(),
    'by function of the service, with all that it calls': new Map<string, number>(),
  };
  const [parts, selves, totals] = Object.values(tables) as [Amounts, Amounts, Amounts];
  const walk = (node: ProfileNode, caller: Caller, above: ReadonlySet<string>): number => {
    const name = `${placeOf(node.url)}:${node.name}`;
    const part = partOf(node);
    const by = part === null ? caller : { part, name };
    add(parts, V8.has(node.name) ? node.name : by.part, node.ofSelf);
    add(selves, part === null ? `${node.name} ← ${by.name}` : name, node.ofSelf);
    const within = new Set([...above, name]);
    const ofChildren = node.children.map((child) => walk(child, by, within));
    const total = ofChildren.reduce((sum, some) => sum + some, node.ofSelf);
    // A function that calls itself counts once.
    if (!above.has(name) && OWN.test(node.url)) add(totals, name, total);
    return total;
  };
  const all = walk(root, { part: 'Node itself', name: 'Node itself' }, new Set());
  print(`\n${unit} of a life: ${(all / LIVES).toFixed(0)}`);
  for (const [title, amounts] of Object.entries(tables)) {
    print(`  ${title}`);
    const sorted = [...amounts].toSorted(([, one], [, other]) => other - one);
    for (const [name, amount] of sorted.slice(0, LINES)) {
      const share = `${((100 * amount) / all).toFixed(1)} %`.padStart(8);
      print(`${(amount / LIVES).toFixed(0).padStart(10)}${share}  ${name}`);
    }
  }
}

type Amounts = Map<string, number>;
/** The nearest function above that is neither Node's nor V8's. */
type Caller = { part: string; name: string };

const V8: ReadonlySet<string> = new Set(['(garbage collector)', '(program)', '(V8 API)']);
const OWN = /^file:.*\/(?:src|events|projections)\/(?!.*node_modules)/;

function add(to: Amounts, key: string, amount: number): void {
  to.set(key, (to.get(key) ?? 0) + amount);
}

/** A package, or a folder of the service; null: Node itself or V8. */
function partOf({ url }: ProfileNode): string | null {
  const place = placeOf(url);
  if (place === '' || place.startsWith('node:')) return null;
  return /^((?:@[^/]+\/|src\/[^/]+\/)?[^/]+)/.exec(place)?.[1] ?? place;
}

/** A path below the repository or below `node_modules`. */
function placeOf(url: string): string {
  const [, inPackage] = /.*\/node_modules\/(.*)/.exec(url) ?? [];
  const [, own] = /^file:.*?\/((?:src|events|projections)\/.*)/.exec(url) ?? [];
  return inPackage ?? own ?? url;
}
