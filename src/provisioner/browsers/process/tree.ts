import { readFileSync, readdirSync } from 'node:fs';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

/**
 * The processes of a workload, as /proc shows them. Chromium's helpers change their parent, their
 * session and their memory of the environment, so a process counts as the workload's when it is in
 * the session of one of its programs or when an argument of it names the workload's folder, which
 * nobody else can have guessed.
 */
export type Workload = {
  folder: string;
  sessions: Session[];
  /**
   * True when we saw the leader of a session end just now: then what is left in the session is
   * still ours. For a record of the past it is false, because the number may have found another
   * owner.
   */
  leaderless: boolean;
};

/**
 * A session by its leader's pid; the start (clock ticks after boot) tells it from a later use of
 * the number.
 */
export type Session = { pid: number; startTicks: number };

type Process = Session & { session: number; alive: boolean };

/** Processes looked at before other work gets its turn: about half a millisecond. */
const SLICE = 32;

/**
 * Kills every process of a workload and resolves when none is left.
 * @throws Error naming the processes that outlive `boundMs`.
 */
export async function endProcesses(workload: Workload, boundMs = 5000): Promise<void> {
  const deadline = performance.now() + boundMs;
  const found = new Map<number, number>();
  for (let waitMs = 2; ; waitMs = Math.min(waitMs * 2, 50)) {
    const processes = await readProcesses();
    for (const process of members(workload, processes)) found.set(process.pid, process.startTicks);
    // A dying process has no arguments any more: those found earlier are followed by their start.
    const left = processes.filter((p) => p.alive && found.get(p.pid) === p.startTicks);
    if (left.length === 0) return;
    if (performance.now() > deadline) {
      throw new Error(
        `processes ${left.map((p) => p.pid).join(', ')} did not end in ${boundMs} ms`,
      );
    }
    for (const { pid } of left) kill(pid);
    await sleep(waitMs);
  }
}

/** When a process started, in clock ticks after boot; null when there is none. */
export function processStart(pid: number): number | null {
  return readProcess(pid)?.startTicks ?? null;
}

/** What a pid means only together with: this boot of the machine and this pid namespace. */
export function pidSpace(): string {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const init = processStart(1) ?? 0;
  return `${boot}/${init}`;
}

function members(workload: Workload, processes: Process[]): Process[] {
  const byPid = new Map(processes.map((process) => [process.pid, process]));
  const sessions = new Set<number>();
  for (const { pid, startTicks } of workload.sessions) {
    const leader = byPid.get(pid);
    if (leader === undefined ? workload.leaderless : leader.startTicks === startTicks) {
      sessions.add(pid);
    }
  }
  const oldest = Math.min(Infinity, ...workload.sessions.map((session) => session.startTicks));
  const firstTicks = oldest === Infinity ? 0 : oldest;
  return processes.filter(
    (process) =>
      process.alive &&
      process.startTicks >= firstTicks &&
      (sessions.has(process.session) || namesFolder(process.pid, workload.folder)),
  );
}

/**
 * Whether an argument is the folder's own option, as Chromium, its reporters of crashes and
 * Xtigervnc carry it; a shell or an editor that somebody has open on the folder is not a part of
 * the browser.
 */
function namesFolder(pid: number, folder: string): boolean {
  const args = read(`/proc/${pid}/cmdline`).split('\0');
  return args.some(
    (arg) =>
      arg.startsWith(`--user-data-dir=${folder}/`) ||
      arg.startsWith(`--database=${folder}/`) ||
      arg === `${folder}/vnc-password`,
  );
}

async function readProcesses(): Promise<Process[]> {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  const processes: Process[] = [];
  for (const [index, pid] of pids.entries()) {
    const process = readProcess(pid);
    if (process !== null) processes.push(process);
    if (index % SLICE === SLICE - 1) await nextTurn();
  }
  return processes;
}

/**
 * Fields of /proc/<pid>/stat, counted after the name, which may itself hold spaces and brackets.
 */
function readProcess(pid: number): Process | null {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  if (state === undefined || fields.length < 20) return null;
  return {
    pid,
    alive: state !== 'Z' && state !== 'X',
    session: Number(fields[3]),
    startTicks: Number(fields[19]),
  };
}

/** A file of /proc, or nothing when its process has gone. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
