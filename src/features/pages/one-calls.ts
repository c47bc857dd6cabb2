import { createPlaces, type NoPlace } from '#src/kernel/async/places.ts';
import { within } from '#src/kernel/async/timeout.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { fitting, readProcessLimits, type ProcessLimits } from '#src/kernel/host/process-limits.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';

/**
 * The calls of this process that are under way, with what bounds them: each may have a picture of
 * 16 MiB in memory, and the browser's message with it: 40 MB. Half of the memory that the process
 * may have is for them, and an eighth for answers that clients still read.
 */
const CALL_BYTES = 40 * 1024 ** 2;
const CALLS = { eachBytes: 2 * CALL_BYTES, least: 3, most: 48 };
const ANSWERS_SHARE = 1 / 8;
/** Calls get this long to end by themselves when the process stops. */
const DRAIN_MS = 2_000;
/** After that they are ended, and their sessions are stopped. */
const STOP_MS = 5_000;

/** A call's place. Disposing gives it back. */
export type Place = {
  /** Aborts with ServiceStopping when the process stops. */
  stopping: AbortSignal;
  /** The call has its answer of so many bytes: another call may have the place while it is read. */
  answered(bytes: number): void;
} & Disposable;

/** The process stops. */
export class ServiceStopping extends Error {
  override readonly name = 'ServiceStopping';
}

export type OneCalls = {
  begin(organizationId: string): Place | Rejection;
  /** Logs that a call's session could not be stopped: it ends by its idle time-out. */
  notStopped(sessionId: string, error: unknown): void;
  /**
   * Begins no further call, waits up to 2 s for those under way, then ends them and waits up to 5 s
   * until their sessions are stopped.
   */
  [Symbol.asyncDispose](): Promise<void>;
};

export type OneCallBounds = {
  /** Calls at once. */
  calls: number;
  /** Answers that clients read, in bytes; one that finds no room there keeps its place. */
  answerBytes: number;
};

/** What a process with so much memory can make; an organization has a third at most. */
export function oneCallBounds({ memoryBytes }: Pick<ProcessLimits, 'memoryBytes'>): OneCallBounds {
  const calls = fitting(memoryBytes, CALLS);
  // Where no limit is known, as many as that many calls may have.
  const known = memoryBytes === Infinity ? calls * CALLS.eachBytes : memoryBytes;
  return { calls, answerBytes: Math.floor(known * ANSWERS_SHARE) };
}

export function createOneCalls({
  log,
  bounds = oneCallBounds(readProcessLimits()),
  drainMs = DRAIN_MS,
}: {
  log: Pick<Logger, 'warn'>;
  bounds?: OneCallBounds;
  drainMs?: number;
}): OneCalls {
  const places = createPlaces({ max: bounds.calls });
  const answers = createPlaces({ max: bounds.answerBytes });
  const open = new Set<object>();
  const stopping = new AbortController();
  let isClosing = false;
  let whenIdle: (() => void) | null = null;

  async function idle(): Promise<void> {
    if (open.size > 0) await new Promise<void>((resolve) => (whenIdle = resolve));
  }
  return {
    begin(organizationId) {
      if (isClosing) return stoppingRejection();
      const taken = places.take(organizationId);
      if ('refused' in taken) return fullRejection(taken);
      const held = new DisposableStack();
      const place = held.use(taken);
      open.add(place);
      return {
        stopping: stopping.signal,
        answered(bytes) {
          const room = answers.take(organizationId, bytes);
          if ('refused' in room) return;
          held.use(room);
          place[Symbol.dispose]();
        },
        [Symbol.dispose]() {
          held.dispose();
          open.delete(place);
          if (open.size === 0) whenIdle?.();
        },
      };
    },
    notStopped: (sessionId, error) =>
      log.warn(
        { sessionId, err: error },
        'failed to stop the session of a one-call request; it ends by its idle time-out',
      ),
    async [Symbol.asyncDispose]() {
      isClosing = true;
      await within(drainMs, idle(), () => undefined);
      stopping.abort(new ServiceStopping('the process stops'));
      await within(STOP_MS, idle(), () => undefined);
    },
  };
}

function fullRejection({ refused, limit }: NoPlace): Rejection {
  const retry = { retryAfterSeconds: 1 };
  if (refused === 'owner') return reject('ONE_CALL_LIMIT_EXCEEDED', { limit }, retry);
  const message = 'This process makes as many calls as it can; try again.';
  return reject('UNAVAILABLE', { part: 'one-calls' }, { ...retry, message });
}

/** The process stops; another one, or its successor, answers the next request. */
export function stoppingRejection(): Rejection {
  return reject(
    'UNAVAILABLE',
    { part: 'one-calls' },
    { retryAfterSeconds: 5, message: 'The process is stopping; try again.' },
  );
}
