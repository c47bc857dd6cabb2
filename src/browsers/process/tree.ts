import { readFileSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { sleep } from '#src/kernel/async/sleep.ts';

/**
 * Identifies the processes of a browser in /proc. Chromium's helpers change their parent, their
 * session and their environment, so a process counts as the browser's if it is in the session of
 * one of its programs, or if one of its arguments names the browser's folder, which has a random
 * name.
 */
export type ProcessTree = {
  folder: string;
  sessions: Session[];
  /**
   * Whether a session without its leader still counts. True for children of this process; false for
   * records of an earlier one, since the pid may belong to another process by now.
   */
  leaderless: boolean;
};

/**
 * A session by its leader's pid; the start time (clock ticks after boot) distinguishes it from a
 * later use of the pid.
 */
export type Session = { pid: number; startTicks: number };

type Process = Session & { session: number; alive: boolean };

/** Processes read before yielding to the event loop: about half a millisecond. */
const SLICE = 32;

/**
 * Kills every process of a browser and resolves when none is left.
 * @throws Error naming the processes that outlive `boundMs`.
 */
export async function endProcesses(tree: ProcessTree, boundMs = 5000): Promise<void> {
  const deadline = performance.now() + boundMs;
  const seen = new Set<number>();
  for (;;) {
    const processes = await readProcesses();
    let left = processesOf(tree, processes, seen);
    for (const { session } of left) seen.add(session);
    if (left.length === 0) return;
    for (const { pid } of left) signalTo(pid, 'SIGKILL');
    // A look at each of them costs a tenth of a look at all of /proc. The next one at all finds
    // what one of them has started before it was killed.
    for (let waitMs = 2; left.length > 0; waitMs = Math.min(waitMs * 2, 50)) {
      if (performance.now() > deadline) throw new Error(describeLeft(left, boundMs));
      await sleep(waitMs);
      left = left.filter(isStillAlive);
    }
  }
}

/** Looks for processes that were started while others were being stopped. */
const FREEZE_LOOKS_MAX = 5;

/**
 * Stops every process of a browser where it is, until it is released. A process that a killed
 * service has left so can still be ended.
 * @throws Error where further ones are started again and again
 */
export async function freezeProcesses(tree: ProcessTree): Promise<Disposable> {
  const frozen = new Set<number>();
  const release = () => {
    for (const pid of frozen) signalTo(pid, 'SIGCONT');
  };
  for (let look = 1; look <= FREEZE_LOOKS_MAX; look += 1) {
    const found = processesOf(tree, await readProcesses()).filter(({ pid }) => !frozen.has(pid));
    if (found.length === 0) return { [Symbol.dispose]: release };
    for (const { pid } of found) signalTo(pid, 'SIGSTOP');
    for (const { pid } of found) frozen.add(pid);
  }
  release();
  throw new Error('the browser starts processes faster than they can be stopped');
}

/** The processes in the sessions, as long as the leaders live. */
export async function pidsIn(sessions: readonly Session[]): Promise<number[]> {
  const processes = await readProcesses();
  const byPid = new Map(processes.map((process) => [process.pid, process]));
  const living = new Set(
    sessions
      .filter(({ pid, startTicks }) => byPid.get(pid)?.startTicks === startTicks)
      .map(({ pid }) => pid),
  );
  return processes.filter(({ session }) => living.has(session)).map(({ pid }) => pid);
}

/** Bytes of memory that the processes use; of what several share, each counts its part. */
export async function memoryOf(tree: ProcessTree): Promise<number> {
  const found = processesOf(tree, await readProcesses());
  const sizes = await Promise.all(found.map(({ pid }) => memoryOfProcess(pid)));
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

/** Sandboxed processes show their sizes to root alone; what is not shared is shown to everybody. */
async function memoryOfProcess(pid: number): Promise<number> {
  const sizes = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  const proportional = kilobytesOf(sizes, 'Pss');
  if (proportional !== null) return proportional * 1024;
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return (kilobytesOf(status, 'RssAnon') ?? 0) * 1024;
}

function kilobytesOf(text: string, name: string): number | null {
  const [, kilobytes] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text) ?? [];
  return kilobytes === undefined ? null : Number(kilobytes);
}

function describeLeft(left: Process[], boundMs: number): string {
  return `processes ${left.map((p) => p.pid).join(', ')} did not end in ${boundMs} ms`;
}

/** A dying process has no arguments any more, but still its start. */
function isStillAlive({ pid, startTicks }: Process): boolean {
  const now = readProcess(pid);
  return now?.alive === true && now.startTicks === startTicks;
}

/** When a process started, in clock ticks after boot; null if it does not exist. */
export function processStart(pid: number): number | null {
  return readProcess(pid)?.startTicks ?? null;
}

/** The scope in which pids are unique: this boot of the host and this pid namespace. */
export function pidSpace(): string {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const init = processStart(1) ?? 0;
  return `${boot}/${init}`;
}

/**
 * @param seen sessions that processes of the tree were in a moment ago: they count without their
 *   leader, too, as no process gets the pid of a session that still has one
 */
function processesOf(
  tree: ProcessTree,
  processes: Process[],
  seen: ReadonlySet<number> = new Set(),
): Process[] {
  const byPid = new Map(processes.map((process) => [process.pid, process]));
  const sessions = new Set<number>();
  for (const { pid, startTicks } of tree.sessions) {
    const leader = byPid.get(pid);
    const counts = tree.leaderless || seen.has(pid);
    if (leader === undefined ? counts : leader.startTicks === startTicks) sessions.add(pid);
  }
  const oldest = Math.min(Infinity, ...tree.sessions.map((session) => session.startTicks));
  const firstTicks = oldest === Infinity ? 0 : oldest;
  return processes.filter(
    (process) =>
      process.alive &&
      process.startTicks >= firstTicks &&
      (sessions.has(process.session) || namesFolder(process.pid, tree.folder)),
  );
}

/**
 * Whether an argument is an option with the folder, as of Chromium, its crash reporters and
 * Xtigervnc. A shell or an editor in the folder is no part of the browser.
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

/** Reads /proc/<pid>/stat: the fields after the name, which may contain spaces and brackets. */
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

/** The text of a file of /proc, or '' where its process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function signalTo(pid: number, signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
