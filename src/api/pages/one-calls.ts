import { reject, type Rejection } from '#src/errors.ts';
import { within } from '#src/async/timeout.ts';
import type { Logger } from '#src/telemetry/logger.ts';

/**
 * The calls of this process that are under way, with what bounds them: each may have a picture of
 * 16 MiB in memory, and the browser's message with it: 40 MB, and all of them 1 GB.
 */

/** Calls at once, of an organization and of all; the answers that clients still read count. */
export const CALLS_PER_ORGANIZATION_MAX = 16;
const CALLS_MAX = 24;
/** Calls get this long to end by themselves when the process stops. */
const DRAIN_MS = 2_000;
/** After that they are ended, and their sessions are stopped. */
const STOP_MS = 5_000;

/** A call's place. Disposing gives it back. */
export type Place = {
  /** Aborts with ServiceStopping when the process stops. */
  stopping: AbortSignal;
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

export function createOneCalls({
  log,
  max = CALLS_MAX,
  drainMs = DRAIN_MS,
}: {
  log: Pick<Logger, 'warn'>;
  max?: number;
  drainMs?: number;
}): OneCalls {
  const open = new Map<object, string>();
  const stopping = new AbortController();
  let isClosing = false;
  let whenIdle: (() => void) | null = null;

  function countOf(organizationId: string): number {
    return [...open.values()].filter((one) => one === organizationId).length;
  }
  async function idle(): Promise<void> {
    if (open.size > 0) await new Promise<void>((resolve) => (whenIdle = resolve));
  }
  return {
    begin(organizationId) {
      if (isClosing) return stoppingRejection();
      if (countOf(organizationId) >= CALLS_PER_ORGANIZATION_MAX)
        return reject(
          'ONE_CALL_LIMIT_EXCEEDED',
          { limit: CALLS_PER_ORGANIZATION_MAX },
          { retryAfterSeconds: 1 },
        );
      if (open.size >= max)
        return reject(
          'UNAVAILABLE',
          { part: 'one-calls' },
          {
            retryAfterSeconds: 1,
            message: 'This process makes as many calls as it can; try again.',
          },
        );
      const place = {};
      open.set(place, organizationId);
      return {
        stopping: stopping.signal,
        [Symbol.dispose]() {
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

/** The process stops; another one, or its successor, answers the next request. */
export function stoppingRejection(): Rejection {
  return reject(
    'UNAVAILABLE',
    { part: 'one-calls' },
    { retryAfterSeconds: 5, message: 'The process is stopping; try again.' },
  );
}
