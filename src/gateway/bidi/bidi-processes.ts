import { spawn, type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { reject, type Rejection } from '#src/errors.ts';
import type { Logger } from '#src/telemetry/logger.ts';

export type BidiLimits = {
  /** Processes of this gateway; each takes some 80 MB, and `bidiMemoryBytes` at most. */
  bidi: number;
  bidiPerOrganization: number;
  /** From its start until it has answered the client's handshake. */
  bidiStartMs: number;
  /** A process that says nothing for so long is frozen, and is killed. */
  bidiSilentMs: number;
  /** A process that has more of the machine's memory, at its beat every 2 s, ends itself. */
  bidiMemoryBytes: number;
};

/** A process that speaks BiDi for one client. */
export type BidiProcess = {
  /** The client's bytes go here, its handshake first. */
  client: Socket;
  /** Ends it; its sockets close. */
  kill(): void;
};

export type BidiProcesses = {
  /**
   * Starts a process on a connection to a browser, which is closed with it. A rejection, which
   * leaves the browser's connection open: too many run, or the machine has no descriptors or no
   * process left.
   */
  start(
    organizationId: string,
    browser: Socket,
    at: { port: number; path: string },
  ): BidiProcess | Rejection;
  /** Those that run, for tests and metrics. */
  pids(): number[];
};

const PROGRAM = fileURLToPath(new URL('./bidi-program.ts', import.meta.url));
const HEAP_MB = 192;
const NOT_STARTED = 'a BiDi process could not be started';

export function createBidiProcesses(limits: BidiLimits, log: Pick<Logger, 'warn'>): BidiProcesses {
  const running = new Map<ChildProcess, string>();

  function tooMany(organizationId: string): Rejection | null {
    const theirs = [...running.values()].filter((id) => id === organizationId).length;
    const [of, limit] =
      theirs >= limits.bidiPerOrganization
        ? ['bidi of organization', limits.bidiPerOrganization]
        : ['bidi', limits.bidi];
    const isFull = theirs >= limits.bidiPerOrganization || running.size >= limits.bidi;
    if (!isFull) return null;
    const message = 'Too many WebDriver BiDi connections are open.';
    return reject('RATE_LIMIT_EXCEEDED', { of, limit }, { message, retryAfterSeconds: 5 });
  }

  return {
    pids: () => [...running.keys()].flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
    start(organizationId, browser, at) {
      const refusal = tooMany(organizationId);
      if (refusal !== null) return refusal;
      const child = spawnProgram({ ...at, memoryBytes: limits.bidiMemoryBytes });
      if (child instanceof Error) {
        log.warn({ err: child }, NOT_STARTED);
        return notStarted();
      }
      child.once('error', (error) => {
        log.warn({ err: error }, NOT_STARTED);
        client?.destroy();
        browser.destroy();
        running.delete(child);
      });
      // Node leaves stdio out where the system had no descriptors for it.
      const [, , , devtools, client] = (child.stdio ?? []) as unknown as (Socket | undefined)[];
      // Without a pid it was never started, and Node would pass 0 or -1 on: that ends this process.
      const kill = (): void => void (child.pid !== undefined && child.kill('SIGKILL'));
      if (devtools === undefined || client === undefined) {
        kill();
        return notStarted();
      }
      running.set(child, organizationId);
      for (const socket of [devtools, client]) socket.on('error', kill);
      watch(child, limits.bidiSilentMs, () => {
        log.warn({ organizationId, pid: child.pid }, 'a frozen BiDi process was killed');
        kill();
      });
      child.once('exit', () => {
        running.delete(child);
        client.destroy();
        browser.destroy();
      });
      devtools.pipe(browser);
      browser.pipe(devtools);
      browser.once('close', kill);
      if (browser.destroyed) kill();
      return { client, kill };
    },
  };
}

/** The program, or why the machine could not make a process; for most reasons `error` follows. */
function spawnProgram(settings: object): ChildProcess | Error {
  try {
    return spawn(process.execPath, [`--max-old-space-size=${HEAP_MB}`, PROGRAM], {
      // No variable of this process: it reads what pages say, and needs no secret.
      env: { BIDI: JSON.stringify(settings) },
      stdio: ['ignore', 'pipe', 'ignore', 'pipe', 'pipe'],
    });
  } catch (error) {
    return error as Error;
  }
}

/** The machine lacks what a process needs; why is in the log. */
function notStarted(): Rejection {
  const message = 'WebDriver BiDi could not be started; try again.';
  return reject('UNAVAILABLE', { part: 'bidi' }, { message, retryAfterSeconds: 5 });
}

/** Calls `onSilent` once the process has written nothing for so long. */
function watch(child: ChildProcess, silentMs: number, onSilent: () => void): void {
  const timer = setTimeout(onSilent, silentMs);
  child.stdout?.on('data', () => timer.refresh());
  child.once('exit', () => clearTimeout(timer));
  child.once('error', () => clearTimeout(timer));
}
