import { jserrors, JetStreamApiError, JetStreamStatusError } from '@nats-io/jetstream/internal';
import {
  ClosedConnectionError,
  ConnectionError,
  DrainingConnectionError,
  PermissionViolationError,
  RequestError,
  TimeoutError,
} from '@nats-io/transport-node';
import { Unavailable } from '#src/kernel/errors.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { JetStreamConnection } from './connection.ts';

/** Longest wait for one answer; a healthy server answers in under a millisecond. */
export const REQUEST_MS = 1_000;
const RETRY_MS = 50;
/**
 * Error codes of an expectation that does not hold: another writer was first. The second one is
 * sent while that writer's message is still in flight.
 */
export const WRONG_LAST_SEQUENCE: ReadonlySet<number> = new Set([10071, 10164]);

/**
 * Repeats a request after an outage until an answer arrives or the bound is over. Only for requests
 * that may be repeated. May exceed the bound by one request (REQUEST_MS).
 * @throws Unavailable('event-log'); an error that is not an outage passes unchanged
 */
export async function requestWithRetry<Answer>(
  connection: JetStreamConnection,
  boundMs: number,
  request: () => Promise<Answer>,
): Promise<Answer> {
  const deadline = performance.now() + boundMs;
  let trouble: unknown = new Error('not connected');
  for (;;) {
    const leftMs = deadline - performance.now();
    if (leftMs <= 0 || !(await connection.whenConnected(leftMs)))
      throw new Unavailable('event-log', trouble);
    try {
      return await connection.whileConnected(request());
    } catch (error) {
      if (!isOutage(error)) throw error;
      trouble = error;
    }
    await sleep(RETRY_MS);
  }
}

/** True if the error means that no server could answer now, not that the request is wrong. */
export function isOutage(error: unknown): boolean {
  if (isForbidden(error)) return false;
  if (error instanceof JetStreamApiError) return error.status >= 500;
  if (error instanceof JetStreamStatusError) return error.code === 503 || error.code === 408;
  return (
    error instanceof TimeoutError ||
    error instanceof RequestError ||
    error instanceof ClosedConnectionError ||
    error instanceof DrainingConnectionError ||
    error instanceof ConnectionError ||
    error instanceof jserrors.JetStreamNotEnabled
  );
}

/** True if an append was refused because another writer was first. */
export function isWrongLastSequence(error: unknown): boolean {
  return error instanceof JetStreamApiError && WRONG_LAST_SEQUENCE.has(error.code);
}

/** True if the server's permissions do not allow this request. */
export function isForbidden(error: unknown): boolean {
  if (error instanceof PermissionViolationError) return true;
  return error instanceof RequestError && error.cause instanceof PermissionViolationError;
}
