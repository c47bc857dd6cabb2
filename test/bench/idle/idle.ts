import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sleep } from '#src/kernel/async/sleep.ts';
import { descendantsOf } from '#test/support/service/processes.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { cpuOf } from '../run-apart.ts';
import { atMost, summarize, type Verdict } from '../samples.ts';

const COUNT_WAKES = fileURLToPath(new URL('count-wakes.mjs', import.meta.url));
/** After its start a service compiles what it has run, and its pool and caches settle. */
const SETTLE_MS = 20_000;
const WINDOW_MS = 60_000;
const WINDOWS = 3;
/** A goal in percent of a core, of the service's own process and of all three. */
const GOAL_MAX = 1;
const PROGRAMS = ['service', 'nats-server', 'redis-server'] as const;

/**
 * Processor time of a service without sessions, all roles in one process, in percent of a core; and
 * what woke it, by file. Browsers and their X servers are not counted.
 */
export async function benchIdle(print: (line: string) => void): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  print(
    `% of a core, median of ${WINDOWS} minutes${PROGRAMS.map((one) => one.padStart(14)).join('')}`,
  );
  for (const browsers of ['simulated', 'process']) {
    await using service = await startService({ BROWSERS: browsers, LOG_LEVEL: 'warn' });
    const percents = await measure(service);
    const cells = percents.map((percent) => percent.toFixed(2).padStart(14));
    print(`BROWSERS=${browsers}`.padEnd(35) + cells.join(''));
    const all = percents.reduce((sum, one) => sum + one, 0);
    verdicts.push(
      atMost(`idle, ${browsers}: % of a core`, percents[0] ?? NaN, GOAL_MAX),
      atMost(`idle, ${browsers}, with its stores: % of a core`, all, GOAL_MAX),
    );
  }
  print('\ntimers fired and files read in a minute, by the file that asked (BROWSERS=process)');
  for (const [place, count] of await countWakes()) print(`${String(count).padStart(6)}  ${place}`);
  return verdicts;
}

/** Of the service, nats-server and redis-server. */
async function measure(service: RunningService): Promise<number[]> {
  const pids = PROGRAMS.map((program) => {
    const found = descendantsOf(service.pid).find(({ command }) => command.includes(program));
    return program === 'service' ? service.pid : found?.pid;
  });
  await sleep(SETTLE_MS);
  const windows: number[][] = PROGRAMS.map(() => []);
  for (let window = 0; window < WINDOWS; window += 1) {
    const [before, begunAt] = [await Promise.all(pids.map(cpuOf)), performance.now()];
    await sleep(WINDOW_MS);
    const after = await Promise.all(pids.map(cpuOf));
    const seconds = (performance.now() - begunAt) / 1_000;
    for (const [at, own] of windows.entries())
      own.push((100 * ((after[at] ?? 0) - (before[at] ?? 0))) / seconds);
  }
  return windows.map((own) => summarize(own).p50);
}

/** Counted in a service of its own: to count costs more than what is counted. */
async function countWakes(): Promise<[string, number][]> {
  const folder = await mkdtemp(join(tmpdir(), 'bss-idle-'));
  const file = join(folder, 'wakes.json');
  const env = { NODE_OPTIONS: `--import ${COUNT_WAKES}`, IDLE_WAKES: file };
  try {
    await using service = await startService({ BROWSERS: 'process', LOG_LEVEL: 'warn', ...env });
    await sleep(SETTLE_MS);
    process.kill(service.pid, 'SIGUSR2');
    await sleep(WINDOW_MS);
    process.kill(service.pid, 'SIGUSR2');
    const text = await eventually(() => readFile(file, 'utf8').catch(() => null), 'the counts');
    const counts = Object.entries(JSON.parse(text) as Record<string, number>);
    return counts.toSorted(([, one], [, other]) => other - one);
  } finally {
    await rm(folder, { recursive: true });
  }
}
