import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import { connectToBrowser, type BrowserAddress } from '#src/browser-link/browser-link.ts';

/** What `/json/version` answers: a few hundred bytes. */
const BYTES_MAX = 16 * 1024;

/** Reads `/json/version`. @throws Error if the browser does not answer before the signal aborts */
export async function readVersion(
  address: BrowserAddress,
  signal: AbortSignal,
): Promise<{ webSocketDebuggerUrl: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = get({
    path: '/json/version',
    createConnection: () => connectToBrowser(address),
    // Chromium accepts no host name but localhost.
    headers: { host: `127.0.0.1:${address.port}` },
    signal,
  });
  request.on('error', reject);
  request.on('response', (response) => {
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > BYTES_MAX) response.destroy(new Error('the answer is too long'));
    });
    text(response).then(resolve, reject);
  });
  return JSON.parse(await promise) as { webSocketDebuggerUrl: string };
}
