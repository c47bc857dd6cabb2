import { get } from 'node:http';
import type { JsonDocument } from '../routes.ts';

/** Documents are far smaller (the protocol's is 1.5 MB); a list with a thousand tabs is 1 MB. */
const DOCUMENT_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Reads a DevTools document of a browser, with every address in it the client's own way in.
 * @throws Error where the browser does not answer in time, or not with such a document.
 */
export async function readDocument(
  document: JsonDocument,
  from: { host: string; port: number },
  to: { prefix: string; ticket: string },
  bound: { timeoutMs: number; signal: AbortSignal },
): Promise<string> {
  const text = await fetchText(`/json/${document}`, from, bound);
  if (document === 'protocol') return text;
  const parsed: unknown = JSON.parse(text);
  return JSON.stringify(rewrite(parsed, to), null, 2);
}

/** The browser's addresses, in the two fields that hold one, by ours; all else is left as it is. */
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
 * `ws://host:port/devtools/(browser|page)/<id>`: the browser's id is ours to hide, a page's is not.
 */
function publicSocket(url: string, { prefix, ticket }: { prefix: string; ticket: string }): string {
  const [, kind, id] = /\/devtools\/(browser|page)\/([A-Za-z0-9-]+)$/.exec(url) ?? [];
  if (kind === 'page') return `${prefix}/devtools/page/${ticket}/${id}`;
  return `${prefix}/devtools/browser/${ticket}`;
}

/** The inspector takes a page's address as `?ws=host:port/path`, or `?wss=`. */
function publicFrontend(url: string, to: { prefix: string; ticket: string }): string {
  return url.replace(/([?&])wss?=([^&]*)/, (_all, before: string, address: string) => {
    const [scheme, rest] = publicSocket(address, to).split('://');
    return `${before}${scheme}=${rest}`;
  });
}

function fetchText(
  path: string,
  { host, port }: { host: string; port: number },
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = get({
    host,
    port,
    path,
    agent: false,
    headers: { host: `127.0.0.1:${port}` }, // Chromium takes no name but localhost
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
      if (bytes > DOCUMENT_BYTES_MAX) response.destroy(new Error('too long a document'));
    });
    response.on('end', () => {
      if (response.statusCode === 200) resolve(Buffer.concat(chunks).toString('utf8'));
      else reject(new Error(`the browser answered ${response.statusCode}`));
    });
  });
  return promise;
}
