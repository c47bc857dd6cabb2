import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';

/** The results of a program; `rssMib` is the most memory that it held. */
export type Apart = {
  code: number | null;
  printed: string;
  rssMib: number;
  /** Processor time, the start included; the time after the last reading is not. */
  cpuSeconds: number;
};

const LOOK_EVERY_MS = 50;
/** The unit of the kernel's clock in `/proc/<pid>/stat`. */
const TICKS_PER_SECOND = 100;
/** A program that takes longer hangs, unless the caller says otherwise. */
const WITHIN_MS = 300_000;

/**
 * Runs one of the benchmarks' programs in a separate Node. @throws Error with its output if it
 * fails
 */
export async function runApart(
  args: readonly string[],
  env: Record<string, string> = {},
  timeout: number = WITHIN_MS,
): Promise<Apart> {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout,
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

/** The process's peak memory so far, as the kernel counts it. */
async function memoryOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
}

/** Processor time of the process so far, in seconds. */
export async function cpuOf(pid: number | undefined): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // Fields 12 and 13 after the name, which may hold any character: time in user and in kernel mode.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** For a read of a process that has just ended. */
function ignore(): void {}
