import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import { connectToBrowser, type BrowserAddress } from '#src/browsers/link/browser-link.ts';
import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';

/** What `/json/version` answers: a few hundred bytes. */
const VERSION_BYTES_MAX = 16 * 1024;
/** What `/json/list` answers has the addresses of all pages, of which each may be 2 MB. */
const LIST_BYTES_MAX = 16 * 1024 ** 2;

/** Reads `/json/version`. @throws Error if the browser does not answer before the signal aborts */
export async function readVersion(
  address: BrowserAddress,
  signal: AbortSignal,
): Promise<{ webSocketDebuggerUrl: string }> {
  const answer = await readJson(address, '/json/version', VERSION_BYTES_MAX, signal);
  return answer as { webSocketDebuggerUrl: string };
}

/**
 * Reads the targets of a browser, those that were in use last first. @throws Error if it does not
 * answer before the signal aborts
 */
export async function readTargets(
  address: BrowserAddress,
  signal: AbortSignal,
): Promise<{ id: string; type: string }[]> {
  const answer = await readJson(address, '/json/list', LIST_BYTES_MAX, signal);
  return answer as { id: string; type: string }[];
}

async function readJson(
  address: BrowserAddress,
  path: string,
  bytesMax: number,
  signal: AbortSignal,
): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = get({
    path,
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
      if (bytes > bytesMax) response.destroy(new Error('the answer is too long'));
    });
    text(response).then(resolve, reject);
  });
  return parseForeignJson(await promise, { bytesMax });
}
