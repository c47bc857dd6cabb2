import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { sleep } from '#src/kernel/async/sleep.ts';
import { startService, type RunningService, type Starting } from '#test/support/service/service.ts';
import { cpuOf } from '../run-apart.ts';
import { atMost, summarize, type Verdict } from '../samples.ts';

const BSS = fileURLToPath(new URL('../../../bss', import.meta.url));
/** What `npm start` runs: the service from its bundle, which the first round builds. */
const LAUNCHER = fileURLToPath(new URL('../../../src/start/embedded/launch.mjs', import.meta.url));
const ROLES = ['api', 'projector', 'provisioner', 'timekeeper', 'gateway', 'archivist', 'webhooks'];
const MASTER_KEY = 'a-key-of-the-benchmark-that-is-long-enough-for-a-service';
const ROUNDS = 3;
/** Calls of `bss` in a row: a shell counts their processor time in hundredths of a second. */
const CALLS = 20;
/** From the ready line until memory is read: what only the start needed is given back by then. */
const SETTLE_MS = 2_000;

type Cost = { cpuSeconds: number; rssMib: number };
const run = promisify(execFile);

/**
 * Processor time of a start until its ready line, and the memory that the process has afterwards:
 * of all roles in one, and of each role beside the stores of another service; and the processor
 * time of a call of `bss`. The unit is a Node that does nothing. Browsers and stores are left out.
 */
export async function benchStart(print: (line: string) => void): Promise<Verdict[]> {
  await using stores = await startService({ MASTER_KEY, LOG_LEVEL: 'warn' });
  const starts: Record<string, Start> = {
    'all roles, npm start': { env: { BROWSERS: 'process', ALLOW_UNISOLATED: 'yes' } },
  };
  for (const role of ROLES) starts[`ROLES=${role}`] = { env: { ROLES: role }, beside: stores };
  const costs = new Map<string, Cost[]>([['node', []]]);
  // The first round builds the bundle and fills the folder of compiled code.
  for (let round = 0; round <= ROUNDS; round += 1) {
    await note('node', await measureNode());
    for (const [name, start] of Object.entries(starts)) await note(name, await measureStart(start));

    async function note(name: string, cost: Cost): Promise<void> {
      if (round > 0) costs.set(name, [...(costs.get(name) ?? []), cost]);
    }
  }
  const [bss, node] = [await measureBss(stores), await cpuOfCalls(process.execPath, ['-e', '0'])];
  return report(print, costs, { bss, node });
}

type Start = { env: Record<string, string> } & Pick<Starting, 'beside'>;

async function measureStart({ env, beside }: Start): Promise<Cost> {
  const starting = { main: LAUNCHER, args: ['start'], ...(beside !== undefined && { beside }) };
  // The log has its ready line at `info`.
  await using service = await startService({ LOG_LEVEL: 'info', ...env }, starting);
  const cpuSeconds = await cpuOf(service.pid);
  await sleep(SETTLE_MS);
  const status = await readFile(`/proc/${service.pid}/status`, 'utf8');
  return { cpuSeconds, rssMib: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024 };
}

async function measureNode(): Promise<Cost> {
  const said = 'JSON.stringify([process.cpuUsage(), process.memoryUsage.rss()])';
  const { stdout } = await run(process.execPath, ['-p', said]);
  const [{ user, system }, rss] = JSON.parse(stdout) as [NodeJS.CpuUsage, number];
  return { cpuSeconds: (user + system) / 1e6, rssMib: rss / 1024 ** 2 };
}

async function measureBss({ dataDir }: RunningService): Promise<number> {
  const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`;
  const none = { npm_lifecycle_event: undefined, NODE_COMPILE_CACHE: undefined };
  const env = { ...process.env, ...none, DATA_DIR: dataDir, PATH };
  await run(BSS, ['keys', 'list', '--org', 'dev'], { env });
  return cpuOfCalls(BSS, ['keys', 'list', '--org', 'dev'], env);
}

/** Seconds of processor time of a call, from its start to its end. */
async function cpuOfCalls(program: string, args: string[], env = process.env): Promise<number> {
  const loop = `while [ $n -lt ${CALLS} ]; do "$0" "$@" >/dev/null || exit; n=$((n+1)); done`;
  const { stdout } = await run('sh', ['-c', `n=0; ${loop}; times`, program, ...args], { env });
  // The last line is of the shell's children: `0m1.230s 0m0.310s`, user and system.
  const times = [...(stdout.trim().split('\n').at(-1) ?? '').matchAll(/(\d+)m([\d.]+)s/g)];
  const seconds = times.reduce(
    (sum, [, minutes, rest]) => sum + 60 * Number(minutes) + Number(rest),
    0,
  );
  return seconds / CALLS;
}

function report(
  print: (line: string) => void,
  costs: Map<string, Cost[]>,
  calls: { bss: number; node: number },
): Verdict[] {
  const p50 = (name: string, of: keyof Cost) =>
    summarize((costs.get(name) ?? []).map((cost) => cost[of])).p50;
  print(`median of ${ROUNDS} starts${' '.repeat(16)}processor s to ready   resident MiB after it`);
  for (const name of costs.keys()) {
    const cells = [p50(name, 'cpuSeconds').toFixed(2), p50(name, 'rssMib').toFixed(1)];
    print(name.padEnd(34) + cells.map((cell) => cell.padStart(21)).join(''));
  }
  print(`${'bss keys list --org dev'.padEnd(34)}${calls.bss.toFixed(2).padStart(21)}`);
  print(`${'node -e 0'.padEnd(34)}${calls.node.toFixed(2).padStart(21)}`);
  const rssOf = (name: string) => p50(name, 'rssMib') / p50('node', 'rssMib');
  const greatest = Math.max(...ROLES.map((role) => rssOf(`ROLES=${role}`)));
  const [all = ''] = [...costs.keys()].filter((name) => name.startsWith('all'));
  return [
    atMost(
      'start, all roles ÷ node: processor time',
      p50(all, 'cpuSeconds') / p50('node', 'cpuSeconds'),
      50,
    ),
    atMost('start, all roles ÷ node: memory', rssOf(all), 3.6),
    atMost('start, the greatest role ÷ node: memory', greatest, 2.5),
    atMost('bss keys list ÷ node -e 0: processor time', calls.bss / calls.node, 10),
  ];
}
