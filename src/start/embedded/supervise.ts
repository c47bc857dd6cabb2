/**
 * Keeps a child process running. Its states:
 *
 *   starting   spawned, not answering yet; then `up`, or `waiting` if it dies or has not answered
 *              within `readyMs` (it is killed then)
 *   up         answers; then `waiting` if it dies
 *   waiting    100 ms, doubled by each failed start in a row up to 2 s; then `starting`
 *   given up   after 10 failed starts in a row; final
 *   stopped    by disposal, from any state: SIGTERM, SIGKILL after 5 s
 *
 * A child that dies within a second of its first answer counts as a failed start. It runs in a new
 * session, so that Ctrl-C reaches only the service, which then stops its children in order. On
 * Linux the kernel sends it SIGTERM if the service is killed.
 */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { doubling } from '#src/kernel/async/retry.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { endOrphan, forgetChild, recordChild, STOP_GRACE_MS } from './orphan-process.ts';

export type Program = {
  name: string;
  command: string;
  args: readonly string[];
  /** Records the running child, so that the next start can end it if it is orphaned. */
  pidFile: string;
  /** Receives stdout and stderr; emptied at the start if it is larger than 10 MB. */
  logFile: string;
  /** Probes whether it answers; takes at most a second. */
  answers: () => Promise<boolean>;
  /** Longest time from its start to its first answer. */
  readyMs: number;
};

export type SupervisionEvents = {
  /** The child died, was restarted and answers. */
  onRestart: () => void;
  /** The child will not be restarted; `lastLines` is its last output. */
  onGiveUp: (lastLines: string) => void;
};

/** The child never answered. */
export class ChildNotStarted extends Error {
  override readonly name = 'ChildNotStarted';
}

const pauseMs = doubling(100, 2_000);
const FAILED_STARTS_MAX = 10;
/** A start counts as successful once the child has answered for this long. */
const STEADY_MS = 1000;
const POLL_MS = 20;
const LOG_BYTES_MAX = 10 * 1024 * 1024;
const LAST_LINES_BYTES = 2048;

/**
 * Resolves when the child answers for the first time. An orphan of an earlier service is ended
 * first.
 * @throws ChildNotStarted
 */
export async function supervise(
  program: Program,
  events: SupervisionEvents,
): Promise<AsyncDisposable> {
  await endOrphan(program.pidFile);
  emptyLargeLog(program.logFile);
  const stopping = new AbortController();
  const first = Promise.withResolvers<void>();
  const isUp = { once: false };
  const done = keepRunning(program, stopping.signal, {
    onUp: () => {
      if (isUp.once) events.onRestart();
      isUp.once = true;
      first.resolve();
    },
    onGiveUp: (lastLines) => {
      if (isUp.once) events.onGiveUp(lastLines);
      else first.reject(new ChildNotStarted(`${program.name} does not start:\n${lastLines}`));
    },
  });
  done.catch((error: unknown) => first.reject(error));
  await first.promise;
  return {
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      await done;
    },
  };
}

async function keepRunning(
  program: Program,
  stopping: AbortSignal,
  on: { onUp: () => void; onGiveUp: (lastLines: string) => void },
): Promise<void> {
  let failedStarts = 0;
  for (;;) {
    const child = await start(program);
    const isUp = await waitUntilUp(program, child, stopping);
    const upAt = Date.now();
    if (isUp) {
      on.onUp();
      await Promise.race([child.ended, aborted(stopping)]);
    }
    failedStarts = isUp && Date.now() - upAt >= STEADY_MS ? 0 : failedStarts + 1;
    await end(child);
    await forgetChild(program.pidFile);
    if (stopping.aborted) return;
    if (failedStarts >= FAILED_STARTS_MAX) {
      on.onGiveUp(child.problem ?? lastLinesOf(program.logFile));
      return;
    }
    await sleep(pauseMs(failedStarts + 1), stopping);
    if (stopping.aborted) return;
  }
}

type Child = {
  process: ChildProcess;
  hasEnded: boolean;
  ended: Promise<void>;
  /** Why it could not be run at all. */
  problem: string | null;
};

async function start({ command, args, logFile, pidFile }: Program): Promise<Child> {
  const log = openSync(logFile, 'a', 0o600);
  const [first = command, ...rest] = [...endWithParent(), command, ...args];
  // Pass no more of the service's environment: it contains secrets.
  const { PATH = '', TMPDIR } = process.env;
  const env = { PATH, ...(TMPDIR === undefined ? {} : { TMPDIR }) };
  const spawned = spawn(first, rest, { stdio: ['ignore', log, log], detached: true, env });
  closeSync(log);
  const { promise, resolve } = Promise.withResolvers<void>();
  const child: Child = { process: spawned, hasEnded: false, ended: promise, problem: null };
  const onEnd = (): void => {
    child.hasEnded = true;
    resolve();
  };
  spawned.once('exit', onEnd);
  spawned.once('error', (error) => {
    child.problem ??= error.message;
    // No exit event follows if no process was created.
    if (spawned.pid === undefined) onEnd();
  });
  if (spawned.pid !== undefined) await recordChild(pidFile, spawned.pid, command);
  return child;
}

async function waitUntilUp(
  { answers, readyMs }: Program,
  child: Child,
  stopping: AbortSignal,
): Promise<boolean> {
  const deadline = Date.now() + readyMs;
  while (!child.hasEnded && !stopping.aborted && Date.now() < deadline) {
    // If the child is dead, another program on the port has answered.
    if ((await answers()) && !child.hasEnded) return true;
    await sleep(POLL_MS);
  }
  return false;
}

async function end(child: Child): Promise<void> {
  if (child.hasEnded) return;
  child.process.kill('SIGTERM');
  const killing = setTimeout(() => child.process.kill('SIGKILL'), STOP_GRACE_MS);
  await child.ended;
  clearTimeout(killing);
}

let deathSignal: readonly string[] | null = null;

/**
 * A command prefix that makes the kernel end the child when this process is killed, if supported.
 */
function endWithParent(): readonly string[] {
  const prefix = ['setpriv', '--pdeathsig', 'TERM'];
  deathSignal ??=
    spawnSync(prefix[0] ?? '', [...prefix.slice(1), 'true']).status === 0 ? prefix : [];
  return deathSignal;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
}

function emptyLargeLog(logFile: string): void {
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_BYTES_MAX) truncateSync(logFile);
}

function lastLinesOf(logFile: string): string {
  return readFileSync(logFile).subarray(-LAST_LINES_BYTES).toString().trim();
}
