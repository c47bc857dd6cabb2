import { retry } from '#src/async/retry.ts';
import { connectToBrowser, type BrowserAddress } from '#src/browser-link/browser-link.ts';

/** Waiting for the programs of a browser that is being launched elsewhere. */

/** Pause between attempts while a program is still opening its port. */
const RETRY_MS = 5;

/** Retries while the port is closed or silent, or open without a program behind it. */
export function untilReady<Result>(
  attempt: () => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  // After an abort whatever fails ends with the signal's reason.
  const isTransient = (error: unknown) => signal.aborted || isTooEarly(error);
  return retry({ pauseMs: () => RETRY_MS, isTransient, signal }, attempt);
}

function isTooEarly(error: unknown): boolean {
  const { code, message, cause } = error as NodeJS.ErrnoException;
  const isClosed = code === 'ECONNREFUSED' || code === 'ECONNRESET';
  return isClosed || message === 'socket hang up' || isTimeout(error) || isTimeout(cause);
}

/** The attempt's own time limit, where it has one; the cause of the error of Node's requests. */
function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}

/** Resolves once the link's other end has proved its key: an image without a relay has none. */
export async function linkReady(address: BrowserAddress, signal: AbortSignal): Promise<void> {
  const ready = Promise.withResolvers<void>();
  const socket = connectToBrowser(address, { signal, onReady: ready.resolve });
  socket.once('error', ready.reject);
  try {
    await ready.promise;
  } finally {
    socket.on('error', () => {}).destroy();
  }
}

/** The result of the work, or the signal's reason as soon as it aborts. */
export async function orAborted<Result>(
  work: Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
    work.catch(() => {});
  }
}
