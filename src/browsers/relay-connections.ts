import { createBackOff } from '#src/kernel/async/back-off.ts';
import { connectToBrowser, type BrowserAddress } from '#src/browsers/link/browser-link.ts';
import type { EgressEndpoint } from './egress-endpoint.ts';

/** Connections that are kept ready for a browser: as many as a page opens at one moment. */
const READY_CONNECTIONS = 8;
/** Pause after a connection that was not used; doubled up to the last. */
const RETRY_MS = 100;
const RETRY_MAX_MS = 5_000;

/**
 * Serves the proxy of a browser without a network: keeps connections into its container, which the
 * relay there joins with Chromium's, until the browser has stopped or the proxy is closed.
 */
export function serveEgress(
  { egress }: { egress: BrowserAddress | null },
  endpoint: EgressEndpoint | undefined,
  stopped: AbortSignal,
): void {
  if (egress === null || endpoint === undefined) return;
  const signal = AbortSignal.any([stopped, endpoint.closed]);
  for (let kept = 0; kept < READY_CONNECTIONS; kept += 1) void keepOne(egress, endpoint, signal);
}

async function keepOne(
  address: BrowserAddress,
  endpoint: EgressEndpoint,
  signal: AbortSignal,
): Promise<void> {
  const backOff = createBackOff(RETRY_MS, RETRY_MAX_MS);
  while (!signal.aborted) {
    if (await serveNext(address, endpoint, signal)) backOff.reset();
    else await backOff.pause(signal);
  }
}

/** @returns true once the browser uses the connection, false where it ended before */
function serveNext(
  address: BrowserAddress,
  endpoint: EgressEndpoint,
  signal: AbortSignal,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connectToBrowser(address, { signal });
  socket.on('error', () => {});
  socket.once('close', () => resolve(false));
  socket.once('data', (first: Buffer) => {
    socket.pause();
    socket.unshift(first);
    endpoint.serve(socket);
    process.nextTick(() => socket.resume());
    resolve(true);
  });
  return promise;
}
