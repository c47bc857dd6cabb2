import { spawn, type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { createPlaces, type NoPlace } from '#src/kernel/async/places.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { fitting, type ProcessLimits } from '#src/kernel/host/process-limits.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';

export type BidiLimits = {
  /** Processes of this gateway; an organization has a third, less while more than three use it. */
  bidi: number;
  /** From its start until it has answered the client's handshake. */
  bidiStartMs: number;
  /** A process that says nothing for so long is frozen, and is killed. */
  bidiSilentMs: number;
  /** A process that has more of the machine's memory, at its beat every 2 s, ends itself. */
  bidiMemoryBytes: number;
  /** All processes together; beyond it the largest one of the organization that has most ends. */
  bidiTotalBytes: number;
};

/** What an idle process has of its own, with a page's events on their way. */
const EACH_BYTES = 48 * 1024 ** 2;
/** Threads of a process, with one to spare. */
const EACH_PIDS = 8;
/** As many as 9 GiB hold; beyond that a gateway more serves better. */
const MOST = 200;
/** A message of the browser is up to 128 MiB: one process may have more than its part. */
const ONE_BYTES_MAX = 512 * 1024 ** 2;

/**
 * What a gateway may run that has so much memory and so many processes.
 * @param share of both that is for BiDi
 */
export function bidiLimits(
  { memoryBytes, pids }: ProcessLimits,
  share: number,
): Pick<BidiLimits, 'bidi' | 'bidiMemoryBytes' | 'bidiTotalBytes'> {
  const total = Math.floor(memoryBytes * share);
  const byMemory = fitting(total, { eachBytes: EACH_BYTES, least: 1, most: MOST });
  const byPids = Math.max(1, Math.floor((pids * share) / EACH_PIDS));
  return {
    bidi: Math.min(byMemory, byPids),
    bidiMemoryBytes: Math.min(ONE_BYTES_MAX, Math.max(2 * EACH_BYTES, Math.floor(total / 2))),
    bidiTotalBytes: total,
  };
}

/** A process that speaks BiDi for one client. */
export type BidiProcess = {
  /** The client's bytes go here, its handshake first. */
  client: Socket;
  /** Ends it; its sockets close. */
  kill(): void;
};

/** The browser's DevTools socket, and the session of WebDriver that the client has. */
export type BidiTarget = {
  port: number;
  path: string;
  /** Its capabilities, as JSON; null: it has none, and begins one of BiDi's. */
  attached: string | null;
};

export type BidiProcesses = {
  /**
   * Starts a process on a connection to a browser, which is closed with it. A rejection, which
   * leaves the browser's connection open: too many run, or the machine has no descriptors or no
   * process left.
   */
  start(organizationId: string, browser: Socket, at: BidiTarget): BidiProcess | Rejection;
  /** Those that run, for tests and metrics. */
  pids(): number[];
};

const PROGRAM = fileURLToPath(new URL('./bidi-program.ts', import.meta.url));
const HEAP_MB = 128;
const NOT_STARTED = 'a BiDi process could not be started';

export function createBidiProcesses(limits: BidiLimits, log: Pick<Logger, 'warn'>): BidiProcesses {
  const running = new Map<ChildProcess, Running>();
  const places = createPlaces({ max: limits.bidi });

  /** Ends one process where all together have too much: that of who has most. */
  function requireRoom(): void {
    const all = [...running.values()];
    if (sumOf(all) <= limits.bidiTotalBytes) return;
    const byOrganization = Map.groupBy(all, ({ organizationId }) => organizationId);
    const most = [...byOrganization.values()].toSorted((a, b) => sumOf(b) - sumOf(a)).at(0);
    const largest = most?.toSorted((a, b) => b.bytes - a.bytes).at(0);
    if (largest === undefined || largest.bytes === 0) return;
    const { organizationId, bytes } = largest;
    log.warn(
      { organizationId, bytes },
      'a BiDi process was ended: all together have too much memory',
    );
    largest.bytes = 0;
    largest.kill();
  }

  return {
    pids: () => [...running.keys()].flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
    start(organizationId, browser, at) {
      const place = places.take(organizationId);
      if ('refused' in place) return tooMany(place);
      const child = spawnProgram({ ...at, memoryBytes: limits.bidiMemoryBytes });
      if (child instanceof Error) {
        log.warn({ err: child }, NOT_STARTED);
        place[Symbol.dispose]();
        return notStarted();
      }
      const forget = (): void => {
        running.delete(child);
        place[Symbol.dispose]();
      };
      child.once('error', (error) => {
        log.warn({ err: error }, NOT_STARTED);
        client?.destroy();
        browser.destroy();
        forget();
      });
      // Node leaves stdio out where the system had no descriptors for it.
      const [, , , devtools, client] = (child.stdio ?? []) as unknown as (Socket | undefined)[];
      // Without a pid it was never started, and Node would pass 0 or -1 on: that ends this process.
      const kill = (): void => void (child.pid !== undefined && child.kill('SIGKILL'));
      if (devtools === undefined || client === undefined) {
        kill();
        place[Symbol.dispose]();
        return notStarted();
      }
      const counted: Running = { organizationId, bytes: 0, kill };
      running.set(child, counted);
      for (const socket of [devtools, client]) socket.on('error', kill);
      watch(child, limits.bidiSilentMs, () => {
        log.warn({ organizationId, pid: child.pid }, 'a frozen BiDi process was killed');
        kill();
      });
      child.stdout?.on('data', (said: Buffer) => {
        counted.bytes = Number(String(said).trim().split('\n').at(-1)) || counted.bytes;
        requireRoom();
      });
      child.once('exit', () => {
        forget();
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

type Running = { organizationId: string; bytes: number; kill: () => void };

function sumOf(all: readonly Running[]): number {
  return all.reduce((sum, { bytes }) => sum + bytes, 0);
}

function tooMany({ refused, limit }: NoPlace): Rejection {
  const retry = { retryAfterSeconds: 5 };
  if (refused === 'all') {
    const message = 'This gateway has as many WebDriver BiDi connections as it can; try again.';
    return reject('UNAVAILABLE', { part: 'bidi' }, { ...retry, message });
  }
  const message = 'Too many WebDriver BiDi connections of the organization are open.';
  return reject(
    'RATE_LIMIT_EXCEEDED',
    { of: 'bidi of organization', limit },
    { ...retry, message },
  );
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
