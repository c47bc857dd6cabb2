import { get } from 'node:http';
import { connectToBrowser, type BrowserAddress } from '#src/browser-link/browser-link.ts';
import type { JsonDocument } from '../routes.ts';

/** The protocol document has 1.5 MB, a list of a thousand tabs 1 MB. */
const DOCUMENT_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Reads a DevTools document of a browser and rewrites its addresses to the gateway's.
 * @throws Error if the browser does not answer in time, or not with such a document.
 */
export async function readDocument(
  document: JsonDocument,
  from: BrowserAddress,
  to: { prefix: string; ticket: string },
  bound: { timeoutMs: number; signal: AbortSignal },
): Promise<string> {
  const text = await fetchText(`/json/${document}`, from, bound);
  if (document === 'protocol') return text;
  const parsed: unknown = JSON.parse(text);
  return JSON.stringify(rewrite(parsed, to), null, 2);
}

/** Replaces the addresses in the two fields that have one; the rest stays unchanged. */
function rewrite(document: unknown, to: { prefix: string; ticket: string }): unknown {
  if (Array.isArray(document)) return document.map((item: unknown) => rewrite(item, to));
  if (typeof document !== 'object' || document === null) return document;
  const entries = Object.entries(document).map(([name, value]: [string, unknown]) => {
    if (typeof value !== 'string') return [name, value];
    if (name === 'webSocketDebuggerUrl') return [name, publicSocket(value, to)];
    if (name.startsWith('devtoolsFrontendUrl')) return [name, publicFrontend(value, to)];
    return [name, value];
  });
  return Object.fromEntries(entries) as unknown;
}

/**
 * `ws://host:port/devtools/(browser|page)/<id>`: a browser's id is hidden, a page's id is kept.
 */
function publicSocket(url: string, { prefix, ticket }: { prefix: string; ticket: string }): string {
  const [, kind, id] = /\/devtools\/(browser|page)\/([A-Za-z0-9-]+)$/.exec(url) ?? [];
  if (kind === 'page') return `${prefix}/devtools/page/${ticket}/${id}`;
  return `${prefix}/devtools/browser/${ticket}`;
}

/** The inspector's URL has a page's address as `?ws=host:port/path` or `?wss=`. */
function publicFrontend(url: string, to: { prefix: string; ticket: string }): string {
  return url.replace(/([?&])wss?=([^&]*)/, (_all, before: string, address: string) => {
    const [scheme, rest] = publicSocket(address, to).split('://');
    return `${before}${scheme}=${rest}`;
  });
}

function fetchText(
  path: string,
  address: BrowserAddress,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = get({
    path,
    createConnection: () => connectToBrowser(address),
    headers: { host: `127.0.0.1:${address.port}` }, // Chromium accepts no host name but localhost
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  request.on('error', reject);
  request.on('response', (response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('error', reject);
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > DOCUMENT_BYTES_MAX) response.destroy(new Error('the document is too long'));
    });
    response.on('end', () => {
      if (response.statusCode === 200) resolve(Buffer.concat(chunks).toString('utf8'));
      else reject(new Error(`the browser answered ${response.statusCode}`));
    });
  });
  return promise;
}
