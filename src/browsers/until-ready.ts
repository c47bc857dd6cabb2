import { retry } from '#src/kernel/async/retry.ts';
import { connectToBrowser, type BrowserAddress } from '#src/browsers/link/browser-link.ts';
import type { RunningBrowser } from './browsers.ts';
import { readVersion } from './chromium/version.ts';

/** Waiting for the programs of a browser that is being launched elsewhere. */

/** Pause between attempts while a program is still opening its port. */
const RETRY_MS = 5;

/**
 * Bounds of a launch, until they are disposed of.
 * @param waitsFor what the launch waits for, if that is known
 */
export function boundLaunch(
  timeoutMs: number,
  stopped: AbortSignal,
  waitsFor: () => string | null = () => null,
) {
  const failed = new AbortController();
  const fail = (why: string): void => failed.abort(new Error(why));
  const timer = setTimeout(() => {
    const why = waitsFor();
    fail(`The browser was not ready within ${timeoutMs} ms${why === null ? '' : ` (${why})`}`);
  }, timeoutMs);
  return {
    /** Aborts when the launch has taken too long, has failed or is stopped. */
    signal: AbortSignal.any([failed.signal, stopped]),
    fail,
    [Symbol.dispose](): void {
      clearTimeout(timer);
      // Closes the sockets of checks that still wait.
      fail('The launch is over');
    },
  };
}

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

/**
 * A browser that does not answer within this is not adopted, and its session fails. Generous: a
 * host on which everything has just restarted is slow.
 */
const ANSWER_MS = 5_000;

/** The browser of an earlier process whose CDP is at this address; null if none answers. */
export async function browserAt(
  cdp: BrowserAddress,
  rest: Omit<RunningBrowser, 'cdp'>,
): Promise<RunningBrowser | null> {
  try {
    const { webSocketDebuggerUrl } = await readVersion(cdp, AbortSignal.timeout(ANSWER_MS));
    return { ...rest, cdp: { ...cdp, path: new URL(webSocketDebuggerUrl).pathname } };
  } catch {
    return null;
  }
}
