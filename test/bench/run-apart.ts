import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';

/** What a program has left; `rssMib` is the most memory that it held. */
export type Apart = {
  code: number | null;
  printed: string;
  rssMib: number;
  /** Processor time, its start included; what it took after the last look is not. */
  cpuSeconds: number;
};

const LOOK_EVERY_MS = 50;
/** Of the kernel's clock, in `/proc/<pid>/stat`. */
const TICKS_PER_SECOND = 100;
/** One that takes longer hangs. */
const WITHIN_MS = 300_000;

/** Runs a program of ours in a Node of its own. @throws Error with what it said, where it fails */
export async function runApart(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Apart> {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: WITHIN_MS,
  });
  let printed = '';
  let said = '';
  let rssMib = 0;
  let cpuSeconds = 0;
  child.stdout.on('data', (text: Buffer) => (printed += text.toString()));
  child.stderr.on('data', (text: Buffer) => (said += text.toString()));
  const looking = setInterval(() => {
    memoryOf(child.pid).then((mib) => (rssMib = Math.max(rssMib, mib)), ignore);
    cpuOf(child.pid).then((seconds) => (cpuSeconds = Math.max(cpuSeconds, seconds)), ignore);
  }, LOOK_EVERY_MS);
  const [code] = (await once(child, 'close').finally(() => clearInterval(looking))) as [
    number | null,
  ];
  if (code !== 0) throw new Error(`${args.join(' ')}: ${code}\n${printed}\n${said}`);
  return { code, printed, rssMib, cpuSeconds };
}

/** The most that the process has held so far, as its kernel counts it. */
async function memoryOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
}

async function cpuOf(pid: number | undefined): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // Behind the name, which may hold anything, the 12th and 13th: in user and in kernel mode.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** It has just ended. */
function ignore(): void {}
