import { createHash } from 'node:crypto';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '#src/kernel/async/sleep.ts';
import { summarize, timed } from '../samples.ts';

/**
 * Measures the machine rather than the service, beside a section: a fixed piece of processor work,
 * and a small write that the disk has to confirm, as each create has some.
 */
export type Probe = {
  /** Waits until the machine is idle, then measures both once. */
  take(): Promise<void>;
  /** What the machine did, and whether it was steady. */
  report(): Promise<{ line: string; isSteady: boolean }>;
} & AsyncDisposable;

/** Some 5 ms of one core. */
const WORK = Buffer.alloc(8 * 1024 ** 2);
const BLOCK = Buffer.alloc(4096);
/** Pieces of processor work at each call. */
const PIECES = 3;
/** On a steady machine p95 of the same work is at most so many times its p50. */
const WORK_SPREAD_MAX = 1.3;
/** And p95 of the same write at most so much later than its p50; a create waits for some. */
const WRITE_LATER_MAX_MS = 4;
/** The share of processor time that the host gave to other machines. */
const STOLEN_MAX = 0.02;
/** The machine is idle if its cores were busy for less than this share of a window. */
const IDLE_SHARE = 0.1;
const IDLE_WINDOW_MS = 100;
const IDLE_WITHIN_MS = 5_000;

export async function startProbe(): Promise<Probe> {
  const folder = await mkdtemp(join(tmpdir(), 'bss-probe-'));
  const file = await open(join(folder, 'block'), 'w');
  const [works, writes]: [number[], number[]] = [[], []];
  const first = await processorTimes();
  let takes = 0;
  let busyTakes = 0;
  async function take(): Promise<void> {
    takes += 1;
    if (!(await isIdleSoon())) busyTakes += 1;
    for (let piece = 0; piece < PIECES; piece += 1) {
      const begunAt = performance.now();
      createHash('sha256').update(WORK).digest();
      works.push(performance.now() - begunAt);
    }
    const { ms } = await timed(async () => {
      await file.write(BLOCK, 0, BLOCK.length, 0);
      await file.datasync();
    });
    writes.push(ms);
  }
  return {
    take,
    async report() {
      const last = await processorTimes();
      const stolen = (last.stolen - first.stolen) / (last.all - first.all);
      const [work, write] = [summarize(works), summarize(writes)];
      const reasons = [
        ...(work.p95 / work.p50 > WORK_SPREAD_MAX ? ['the same work took unequal times'] : []),
        ...(write.p95 - write.p50 > WRITE_LATER_MAX_MS
          ? ['the same write took unequal times']
          : []),
        ...(stolen > STOLEN_MAX ? ['the host gave its cores to other machines'] : []),
        ...(busyTakes > 0 ? [`other work ran before ${busyTakes} of ${takes} steps`] : []),
      ];
      const figures =
        `work ${between(work)} ms, write ${between(write)} ms (p50, p95), ` +
        `${(100 * stolen).toFixed(1)} % of processor time stolen`;
      const isSteady = reasons.length === 0;
      const line = isSteady ? 'the machine was steady' : 'THE MACHINE WAS UNSTEADY';
      return { line: `${[line, ...reasons].join('; ')}: ${figures}`, isSteady };
    },
    async [Symbol.asyncDispose]() {
      await file.close();
      await rm(folder, { recursive: true });
    },
  };
}

function between({ p50, p95 }: { p50: number; p95: number }): string {
  return `${p50.toFixed(1)}, ${p95.toFixed(1)}`;
}

/** Whether the machine becomes idle within some seconds: what was measured before has ended. */
async function isIdleSoon(): Promise<boolean> {
  const deadline = performance.now() + IDLE_WITHIN_MS;
  while (performance.now() < deadline) {
    const before = await processorTimes();
    await sleep(IDLE_WINDOW_MS);
    const after = await processorTimes();
    if ((after.busy - before.busy) / (after.all - before.all) < IDLE_SHARE) return true;
  }
  return false;
}

/** Processor time of all cores since the machine's start, in the kernel's ticks of 10 ms. */
export async function processorTimes(): Promise<{ busy: number; stolen: number; all: number }> {
  const [line = ''] = (await readFile('/proc/stat', 'utf8')).split('\n');
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softirq = 0, stolen = 0] =
    line.split(/\s+/).slice(1).map(Number);
  const busy = user + nice + system + irq + softirq;
  return { busy, stolen, all: busy + idle + waiting + stolen };
}
