import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import type { JsonDocument, TicketForm } from '../routes.ts';
import {
  dialOwnBrowser,
  DOCUMENT_BYTES_MAX,
  requestDocument,
  type CdpEndpoint,
} from './own-browser.ts';

/** What addresses in a document look like: their beginning, and where the ticket stands. */
type Addressed = { prefix: string; ticket: string; form: TicketForm };

type Bound = { timeoutMs: number; signal: AbortSignal };

/**
 * Reads a DevTools document of a session's browser and rewrites its addresses to the gateway's.
 * @throws DialFailed if the browser does not answer in time, or if it is another browser;
 * SyntaxError if its document is no JSON, RangeError if it is none of Chromium's
 */
export async function readDocument(
  document: JsonDocument,
  from: CdpEndpoint,
  to: Addressed,
  bound: Bound,
): Promise<string> {
  const { socket, version } = await dialOwnBrowser(from, bound);
  const text =
    document === 'version'
      ? version
      : await requestDocument(socket, `/json/${document}`, from.port, bound);
  socket.destroy();
  return document === 'protocol' ? text : withAddresses(text, to);
}

/**
 * Opens a page by Chromium's `PUT /json/new`, and answers its target with the gateway's addresses.
 * @param url as it stands in the query; empty: a blank page
 * @throws DialFailed, SyntaxError as above
 */
export async function openPage(
  url: string,
  from: CdpEndpoint,
  to: Addressed,
  bound: Bound,
): Promise<string> {
  const { socket } = await dialOwnBrowser(from, bound);
  const path = `/json/new${url === '' ? '' : `?${url}`}`;
  const text = await requestDocument(socket, path, from.port, bound, 'PUT');
  socket.destroy();
  return withAddresses(text, to);
}

/**
 * Brings a tab to the front, or closes it. Returns Chromium's sentence; null: there is no such tab.
 * @throws DialFailed if the browser does not answer in time, or if it is another browser
 */
export async function changeTab(
  action: 'activate' | 'close',
  targetId: string,
  from: CdpEndpoint,
  bound: Bound,
): Promise<string | null> {
  const { socket } = await dialOwnBrowser(from, bound);
  // Of the same connection, so that the answer is that of the browser which gets the command.
  const list = parsed(await requestDocument(socket, '/json/list', from.port, bound));
  const isThere = Array.isArray(list) && list.some((tab: { id?: unknown }) => tab.id === targetId);
  const sentence = isThere
    ? await requestDocument(socket, `/json/${action}/${targetId}`, from.port, bound)
    : null;
  socket.destroy();
  return sentence;
}

function withAddresses(text: string, to: Addressed): string {
  return JSON.stringify(rewrite(parsed(text), to), null, 2);
}

/** Chromium's documents are nested three deep. */
function parsed(text: string): unknown {
  return parseForeignJson(text, { bytesMax: DOCUMENT_BYTES_MAX, depthMax: 32 });
}

/** Replaces the addresses in the two fields that have one; the rest stays unchanged. */
function rewrite(document: unknown, to: Addressed): unknown {
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
 * `ws://host:port/devtools/(browser|page)/<id>`. With the ticket in the path a browser's id is left
 * out; clients that build further addresses expect it where it is in Chromium's.
 */
function publicSocket(url: string, { prefix, ticket, form }: Addressed): string {
  const [path = '', kind, id] = /\/devtools\/(browser|page)\/([A-Za-z0-9-]+)$/.exec(url) ?? [];
  if (form === 'port') return `${prefix}${path}`;
  if (form === 'query') return `${prefix}${path}?ticket=${ticket}`;
  if (kind === 'page') return `${prefix}/devtools/page/${ticket}/${id}`;
  return `${prefix}/devtools/browser/${ticket}`;
}

/** The inspector's URL has a page's address as `?ws=host:port/path` or `?wss=`. */
function publicFrontend(url: string, to: Addressed): string {
  // A query in a query would have to be encoded, which inspectors do not undo.
  const form = to.form === 'query' ? 'path' : to.form;
  return url.replace(/([?&])wss?=([^&]*)/, (_all, before: string, address: string) => {
    const [scheme, rest] = publicSocket(address, { ...to, form }).split('://');
    return `${before}${scheme}=${rest}`;
  });
}
