import { readFile } from 'node:fs/promises';
import type { WebSocket } from 'ws';
import { sleep } from '#src/kernel/async/sleep.ts';
import { descendantsOf } from '#test/support/service/processes.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { command, firstReply } from '../cdp-client.ts';
import { processorTimes, type Probe } from '../harness/probe.ts';
import { keepIdle, createSession, stopSession, untilIdle } from '../sessions.ts';
import { atMost, summarize, type Verdict } from '../samples.ts';
import { launchBare, type Programs } from './bare-browser.ts';
import type { LifecycleOptions } from './bench-lifecycle.ts';

/**
 * What the whole life of a browser costs (launch or create, one page, end): the median of several
 * rounds.
 */
type WholeLife = {
  /** Processor time of the whole machine, each side alone on it. */
  cpuSeconds: number;
  /** Proportional memory of a browser's processes and its X server's, with the page open. */
  pssMib: number;
};

/** The unit of /proc/stat. */
const TICKS_PER_SECOND = 100;
/** Two browsers are launched at once, and take at least this long. */
const REFILL_MS = 500;
const PAGE = 'data:text/html,<title>One page</title><h1>One page</h1>';

const TOGETHER = [1, 4, 10];

/** Whole lives (create, one page, stop) beside those of bare Chromium with its X server. */
export async function benchWholeLife(options: LifecycleOptions, probe: Probe): Promise<Verdict[]> {
  const { env, programs, print } = options;
  print(`whole life of one browser${' '.repeat(19)}   cpu s  bare s  PSS MiB  bare MiB`);
  const verdicts: Verdict[] = [];
  for (const atOnce of TOGETHER) {
    const rounds = Math.ceil(options.rounds / Math.min(4, atOnce));
    await probe.take();
    const bare = await measureBareLife(programs, atOnce, rounds);
    const session = await measureServiceLife({ ...env, POOL_MAX: '20' }, atOnce, rounds);
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

async function measureServiceLife(
  env: Record<string, string>,
  atOnce: number,
  rounds: number,
): Promise<WholeLife> {
  await using service = await startService({ ...env, ...keepIdle(atOnce) });
  return await measureSessionLife(service, atOnce, rounds);
}

/** Bare browsers with their X servers, launched and ended together. */
async function measureBareLife(
  programs: Programs,
  atOnce: number,
  rounds: number,
): Promise<WholeLife> {
  return measureRounds(rounds, atOnce, async (weigh) => {
    const browsers = await Promise.all(
      Array.from({ length: atOnce }, () => launchBare(programs, 'headful')),
    );
    await Promise.all(browsers.map(({ socket }) => openPage(socket)));
    await weigh(process.pid);
    await Promise.all(browsers.map((browser) => browser.exit()));
    await Promise.all(browsers.map((browser) => browser.remove()));
  });
}

/**
 * Sessions of a service whose pool keeps as many browsers idle, created and stopped together. Their
 * cost has that of the browsers that take their places.
 */
async function measureSessionLife(
  service: RunningService,
  atOnce: number,
  rounds: number,
): Promise<WholeLife> {
  await untilIdle(service, atOnce);
  return measureRounds(rounds, atOnce, async (weigh) => {
    const sessions = await Promise.all(Array.from({ length: atOnce }, () => openSession(service)));
    await weigh(service.pid);
    await Promise.all(sessions.map(({ id }) => stopSession(service, id)));
    // Each request for the pool's state would count among the cost of the sessions.
    await sleep(REFILL_MS * Math.max(1, atOnce / 2));
    await untilIdle(service, atOnce);
  });
}

async function openSession(service: RunningService): Promise<{ id: string }> {
  const { id, cdpUrl } = await createSession(service);
  await openPage(await firstReply(cdpUrl));
  return { id };
}

/** Opens the page in a tab of its own, and resolves once it has loaded. */
async function openPage(socket: WebSocket): Promise<void> {
  const { targetId } = await command(socket, 'Target.createTarget', { url: PAGE });
  const attach = { targetId, flatten: true };
  const { sessionId } = await command(socket, 'Target.attachToTarget', attach);
  const isLoaded = async () => {
    const expression = 'document.title === "One page" && document.readyState === "complete"';
    const { result } = await command(
      socket,
      'Runtime.evaluate',
      { expression },
      sessionId as string,
    );
    return (result as { value: boolean }).value;
  };
  await eventually(isLoaded, 'the page has loaded');
}

async function measureRounds(
  rounds: number,
  atOnce: number,
  life: (weigh: (parent: number) => Promise<void>) => Promise<void>,
): Promise<WholeLife> {
  const [seconds, memory]: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round += 1) {
    const before = await busySeconds();
    let weighed = 0;
    await life(async (parent) => {
      weighed = await pssMib(parent);
    });
    // The first one fills the caches.
    if (round > 0) seconds.push(((await busySeconds()) - before) / atOnce);
    if (round > 0) memory.push(weighed);
  }
  return { cpuSeconds: summarize(seconds).p50, pssMib: summarize(memory).p50 };
}

/** Processor time of all cores since the machine's start, without what was idle or stolen. */
async function busySeconds(): Promise<number> {
  return (await processorTimes()).busy / TICKS_PER_SECOND;
}

const SCREEN = /^\S*X(tiger)?vnc /;
const BROWSER = /^\S*(chrom|X(tiger)?vnc)/;

/** Memory of one browser below a parent, on average; a shared page counts in parts. */
async function pssMib(parent: number): Promise<number> {
  const browsers = descendantsOf(parent).filter(({ command: name }) => BROWSER.test(name));
  const sizes = await Promise.all(
    browsers.map(({ pid }) => readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')),
  );
  const kib = sizes.map((text) => Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0));
  const screens = browsers.filter(({ command: name }) => SCREEN.test(name)).length;
  return kib.reduce((sum, size) => sum + size, 0) / 1024 / screens;
}
