import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { processStart } from './tree.ts';
import { keepTail, splitLines } from '../output.ts';
import type { Session } from './tree.ts';

export type ChildExit = { exitCode: number | null; signal: NodeJS.Signals | null };

/** A program of a browser, the leader of its own session and process group. */
export type Child = {
  process: ChildProcess;
  /** Null where the program could not be started; `exited` is settled then. */
  session: Session | null;
  exited: Promise<ChildExit>;
  /** Resolves when every process has closed its stderr. */
  drained: Promise<void>;
  /** The last lines of stderr, at most 2 KiB. */
  tail: () => string;
};

export type ChildOptions = {
  env: Record<string, string>;
  cwd: string;
  /** The user of the program; undefined: the service's. */
  user: { uid: number; gid: number } | undefined;
  /** Gives the child a pipe as file descriptor 3. */
  pipe3?: boolean;
  /** Called for each line of stderr. */
  onLine?: (line: string) => void;
};

/**
 * Starts a program in a session of its own. A failed start appears as an exit, with the cause in
 * `tail`.
 */
export function startChild(command: string, args: string[], options: ChildOptions): Child {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', options.pipe3 === true ? 'pipe' : 'ignore'],
    ...options.user,
  });
  const exited = Promise.withResolvers<ChildExit>();
  const drained = Promise.withResolvers<void>();
  const tail = keepTail();
  const lines = splitLines((line) => {
    tail.add(line);
    options.onLine?.(line);
  });
  child.stderr?.setEncoding('utf8').on('data', lines);
  child.on('error', (error) => {
    if (child.pid !== undefined) return;
    tail.add(error.message);
    exited.resolve({ exitCode: null, signal: null });
    drained.resolve();
  });
  child.on('exit', (exitCode, signal) => exited.resolve({ exitCode, signal }));
  child.on('close', () => {
    lines('\n');
    drained.resolve();
  });
  return {
    process: child,
    session: child.pid === undefined ? null : sessionOf(child.pid),
    exited: exited.promise,
    drained: drained.promise,
    tail: tail.text,
  };
}

/** A child keeps its entry in /proc until it is waited for, so its start time is always known. */
function sessionOf(pid: number): Session {
  const startTicks = processStart(pid);
  if (startTicks === null) throw new Error(`/proc has no process ${pid}, which was just started`);
  return { pid, startTicks };
}
