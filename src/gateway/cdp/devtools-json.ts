import type { JsonDocument } from '../routes.ts';
import { dialOwnBrowser, requestDocument, type CdpEndpoint } from './own-browser.ts';

/**
 * Reads a DevTools document of a session's browser and rewrites its addresses to the gateway's.
 * @throws DialFailed if the browser does not answer in time, or if it is another browser;
 * SyntaxError if its document is no JSON
 */
export async function readDocument(
  document: JsonDocument,
  from: CdpEndpoint,
  to: { prefix: string; ticket: string },
  bound: { timeoutMs: number; signal: AbortSignal },
): Promise<string> {
  const { socket, version } = await dialOwnBrowser(from, bound);
  const text =
    document === 'version'
      ? version
      : await requestDocument(socket, `/json/${document}`, from.port, bound);
  socket.destroy();
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
