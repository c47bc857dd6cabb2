import type { Socket } from 'node:net';
import { connectToBrowser, type BrowserAddress } from '#src/browsers/link/browser-link.ts';

/** The browser did not answer in time or refused, or the connection was ended meanwhile. */
export class DialFailed extends Error {
  override readonly name = 'DialFailed';
}

/**
 * Opens a connection to a browser, through its link where it has one.
 * @throws DialFailed after `timeoutMs`, on any error, or when `signal` is aborted.
 */
export function dial(
  address: BrowserAddress,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<Socket> {
  const ready = Promise.withResolvers<void>();
  const socket = connectToBrowser(address, { onReady: ready.resolve });
  socket.on('error', () => {}); // never removed: 'close' follows every error and is handled
  return settle(socket, options, (resolve) => {
    void ready.promise.then(() => resolve(socket));
  });
}

/** A server's first bytes: its HTTP response head and possibly more. */
type ResponseHead = { status: number; bytes: Buffer };

const HEAD_BYTES_MAX = 16 * 1024;

/**
 * Reads an HTTP response's head and leaves the socket paused; `bytes` may contain more.
 * @throws DialFailed like `dial`, or if this is no HTTP response; the socket is destroyed then.
 */
export function readResponseHead(
  socket: Socket,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<ResponseHead> {
  let bytes: Buffer = Buffer.alloc(0);
  return settle(socket, options, (resolve, fail) => {
    socket.on('data', onData);
    socket.resume(); // an earlier answer on this connection left it paused
    function onData(chunk: Buffer): void {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      if (!bytes.includes('\r\n\r\n')) {
        if (bytes.length > HEAD_BYTES_MAX) fail('the response head is too long');
        return;
      }
      socket.off('data', onData);
      socket.pause();
      const status = /^HTTP\/1\.1 (\d{3}) /.exec(bytes.toString('latin1', 0, 13))?.[1];
      if (status === undefined) fail('no HTTP response');
      else resolve({ status: Number(status), bytes });
    }
  });
}

/** A promise on a socket with a time-out and a signal; removes its listeners and its timer. */
export function settle<T>(
  socket: Socket,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
  start: (resolve: (value: T) => void, fail: (why: string) => void) => void,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const timer = setTimeout(() => fail(`no answer within ${timeoutMs} ms`), timeoutMs);
  socket.on('error', onError);
  socket.on('close', onClose);
  signal.addEventListener('abort', onAbort);
  start(succeed, fail);
  if (signal.aborted) onAbort();
  return promise;

  function succeed(value: T): void {
    leave();
    resolve(value);
  }
  function fail(why: string): void {
    leave();
    socket.destroy();
    reject(new DialFailed(why));
  }
  function leave(): void {
    clearTimeout(timer);
    socket.off('error', onError);
    socket.off('close', onClose);
    signal.removeEventListener('abort', onAbort);
  }
  function onError(error: Error): void {
    fail(error.message);
  }
  function onClose(): void {
    fail('closed');
  }
  function onAbort(): void {
    fail('the connection was ended');
  }
}
