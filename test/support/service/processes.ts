import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Linux's view of processes and sockets, for tests that check what remains of them. */
export type SeenProcess = {
  pid: number;
  /** Clock ticks after boot: distinguishes it from a later process with the same id. */
  startTicks: string;
  parent: number;
  /** Its session: programs that were started with their own session keep their helpers in it. */
  session: number;
  command: string;
};

/** All descendants of a process now, without itself. */
export function descendantsOf(pid: number): SeenProcess[] {
  const all = readProcesses();
  const found = new Map<number, SeenProcess>();
  const roots = new Set([pid]);
  for (let before = -1; before !== found.size;) {
    before = found.size;
    for (const process of all)
      if (roots.has(process.parent) || roots.has(process.session)) {
        if (process.pid === pid) continue;
        found.set(process.pid, process);
        roots.add(process.pid);
      }
  }
  return [...found.values()];
}

/** Processes that use a folder: by an argument, a variable or their working directory. */
export function processesAt(folder: string): SeenProcess[] {
  return readProcesses().filter(
    ({ pid, command }) =>
      command.includes(folder) ||
      read(`/proc/${pid}/environ`).includes(folder) ||
      workingFolder(pid).startsWith(folder),
  );
}

/** Those of the given processes that still run; a zombie does not. */
export function stillRunning(processes: readonly SeenProcess[]): SeenProcess[] {
  return processes.filter(({ pid, startTicks }) => readProcess(pid)?.startTicks === startTicks);
}

/** TCP connections whose end with this port belongs to a process of this machine. */
export function connectionsTo(port: number): number {
  const rows = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => read(file).split('\n'));
  return rows.filter((row) => {
    const fields = row.trim().split(/\s+/);
    const [local = '', state = '', inode = '0'] = [fields[1], fields[3], fields[9]];
    return (
      Number.parseInt(local.split(':')[1] ?? '', 16) === port && state !== LISTEN && inode !== '0'
    );
  }).length;
}

const LISTEN = '0A';

function readProcesses(): SeenProcess[] {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return pids.map(readProcess).filter((process) => process !== null);
}

/** Fields are counted after the name, which may itself hold spaces and brackets. */
function readProcess(pid: number): SeenProcess | null {
  const stat = read(`/proc/${pid}/stat`);
  const [state = 'X', parent, , session, ...fields] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ');
  if (state === 'X' || state === 'Z' || state === '') return null;
  return {
    pid,
    startTicks: fields[15] ?? '',
    parent: Number(parent),
    session: Number(session),
    command: read(`/proc/${pid}/cmdline`).replaceAll('\0', ' '),
  };
}

function workingFolder(pid: number): string {
  return readLink(`/proc/${pid}/cwd`);
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** Empty if the process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
