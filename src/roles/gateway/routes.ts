import type { IncomingMessage } from 'node:http';

/**
 * The route of a request. `ticket` has the form of a ticket; it is not verified yet.
 */
export type Route =
  | { to: 'browser'; ticket: string }
  | { to: 'page'; ticket: string; targetId: string }
  /** `attached`: the capabilities of a session of WebDriver that is there, as JSON. */
  | { to: 'bidi'; ticket: string; attached: string | null }
  | { to: 'json'; ticket: string; document: JsonDocument; form: TicketForm }
  | { to: 'new-page'; ticket: string; url: string; form: TicketForm }
  | { to: 'tab'; ticket: string; action: 'activate' | 'close'; targetId: string }
  | { to: 'debugger-address'; ticket: string }
  /** `path` is the driver's own: `/session`, `/status` or `/session/<id>` and what follows. */
  | { to: 'webdriver'; ticket: string; path: string }
  | { to: 'screen'; ticket: string }
  | { to: 'viewer'; ticket: string }
  | { to: 'viewer-state'; ticket: string }
  | { to: 'viewer-slash' }
  | { to: 'viewer-file'; file: string };

/** The DevTools documents that the gateway serves. */
export type JsonDocument = 'version' | 'list' | 'protocol';

/**
 * How the ticket came, which says what addresses in the answer look like. A client that gave it in
 * the query may build further addresses from the one that it has; one that gave it in a header may
 * be unable to do so with a WebSocket, so that it gets addresses with the ticket in their path.
 * `port`: the session has a port of its own, and addresses need no ticket.
 */
export type TicketForm = 'path' | 'query' | 'header' | 'port';

/** A ticket, and what is left of the query without it. */
type Given = { ticket: string; form: TicketForm; rest: string };

/** What a request says of where it goes. */
type Asking = { url?: string | undefined; headers: IncomingMessage['headers'] };

const TICKET = '([A-Za-z0-9_-]{24,314})';
/** A browser's own id. 36 characters of this form are no ticket: those are random. */
const GUID = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';
const BROWSER = new RegExp(`^/devtools/browser/(?!${GUID}/?$)${TICKET}/?$`);
/** BiDi's own paths: `/session`, and `/session/<id>` of a session of WebDriver. */
const BIDI = new RegExp(`^/devtools/bidi/${TICKET}(?:/session(/[A-Za-z0-9._-]{1,128})?)?/?$`);
const BARE_BIDI = /^\/devtools\/bidi(?:\/session)?\/?$/;
const CAPABILITIES_LENGTH_MAX = 4_096;
const PAGE = new RegExp(`^/devtools/page/${TICKET}/([A-Za-z0-9-]{1,64})/?$`);
/**
 * With and without `browser/`: clients append `/json/version/` to the address that they have.
 */
const JSON_DOCUMENT = new RegExp(`^/devtools/(?:browser/)?${TICKET}(/json(?:/.*)?)$`);
const WEBDRIVER = new RegExp(
  `^/webdriver/${TICKET}(/status|/session(?:/[0-9a-f]{32}(?:/[A-Za-z0-9%._~:-]{1,256}){0,8})?)$`,
);
const VNC = new RegExp(`^/vnc/${TICKET}(/|/websockify/?|/state)?$`);
const VIEWER_FILE = /^\/viewer\/([A-Za-z0-9._/-]{1,128})$/;

const DOCUMENT = /^\/json(?:\/(version|list|protocol))?\/?$/;
const TAB = /^\/json\/(activate|close)\/([A-Za-z0-9-]{1,64})\/?$/;
const NEW_PAGE = /^\/json\/new\/?$/;
const BARE_BROWSER = new RegExp(`^/devtools/browser(?:/${GUID})?/?$`);
const BARE_PAGE = /^\/devtools\/page\/([A-Za-z0-9-]{1,64})\/?$/;
/** For the API: below `/devtools`, so that proxies in front lead it to a gateway. */
const DEBUGGER_ADDRESS = '/devtools/debugger-address';
const IN_QUERY = new RegExp(`^ticket=${TICKET}(?:&|$)`);
const IN_QUERY_ANYWHERE = new RegExp(`(?:^|&)ticket=${TICKET}(?:&|$)`);
const ONLY_TICKET = new RegExp(`^${TICKET}$`);
const BEARER = new RegExp(`^Bearer +${TICKET}$`, 'i');

/**
 * Parses where a request goes; null: no such route. A ticket in the path comes first, then
 * `?ticket=`, then the header `X-Bss-Ticket`, then `Authorization: Bearer`: a client that also
 * sends its API key, or a query of its own, is let in by the path that it has.
 */
export function parseRoute({ url = '', headers }: Asking): Route | null {
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  const query = mark === -1 ? '' : url.slice(mark + 1);
  return parsePath(path, query) ?? parseBare(path, query, headers);
}

/** Parses where a request to a session's own port goes: to Chromium's own paths alone. */
export function parsePortRoute({ url = '' }: Asking, ticket: string): Route | null {
  const [path = '', ...query] = url.split('?');
  return bareRoute(path, { ticket, form: 'port', rest: query.join('?') });
}

function parsePath(path: string, query: string): Route | null {
  let match = BROWSER.exec(path);
  if (match?.[1] !== undefined) return { to: 'browser', ticket: match[1] };
  match = BIDI.exec(path);
  if (match?.[1] !== undefined)
    return { to: 'bidi', ticket: match[1], attached: match[2] ? capabilitiesOf(query) : null };
  match = PAGE.exec(path);
  if (match?.[1] !== undefined && match[2] !== undefined)
    return { to: 'page', ticket: match[1], targetId: match[2] };
  match = JSON_DOCUMENT.exec(path);
  if (match?.[1] !== undefined && match[2] !== undefined)
    return jsonRoute(match[2], { ticket: match[1], form: 'path', rest: query });
  match = WEBDRIVER.exec(path);
  if (match?.[1] !== undefined && match[2] !== undefined)
    return { to: 'webdriver', ticket: match[1], path: match[2] };
  match = VNC.exec(path);
  if (match?.[1] !== undefined) return vncRoute(match[1], match[2]);
  match = VIEWER_FILE.exec(path);
  if (match?.[1] !== undefined) return { to: 'viewer-file', file: match[1] };
  return null;
}

/** Chromium's own paths, with the ticket beside them. */
function parseBare(path: string, query: string, headers: Asking['headers']): Route | null {
  const given = inQuery(query, NEW_PAGE.test(path)) ?? inHeader(query, headers);
  if (given === null) return null;
  if (path === DEBUGGER_ADDRESS) return { to: 'debugger-address', ticket: given.ticket };
  return bareRoute(path, given);
}

function bareRoute(path: string, given: Given): Route | null {
  if (BARE_BIDI.test(path)) return { to: 'bidi', ticket: given.ticket, attached: null };
  if (BARE_BROWSER.test(path)) return { to: 'browser', ticket: given.ticket };
  const targetId = BARE_PAGE.exec(path)?.[1];
  if (targetId !== undefined) return { to: 'page', ticket: given.ticket, targetId };
  return jsonRoute(path, given);
}

/** As New Session has put them into the address; a client's own are worth as much. */
function capabilitiesOf(query: string): string {
  const text = new URLSearchParams(query).get('capabilities') ?? '';
  return text.length <= CAPABILITIES_LENGTH_MAX ? text : '';
}

/** @param isFirst the rest of the query is an address, which may have a `ticket` of its own */
function inQuery(query: string, isFirst: boolean): Given | null {
  const match = (isFirst ? IN_QUERY : IN_QUERY_ANYWHERE).exec(query);
  const ticket = match?.[1];
  if (match === null || ticket === undefined) return null;
  const rest = isFirst ? query.slice(match[0].length) : '';
  return { ticket, form: 'query', rest };
}

function inHeader(rest: string, headers: Asking['headers']): Given | null {
  const own = headers['x-bss-ticket'];
  const ticket =
    (typeof own === 'string' ? ONLY_TICKET.exec(own)?.[1] : undefined) ??
    BEARER.exec(headers.authorization ?? '')?.[1];
  return ticket === undefined ? null : { ticket, form: 'header', rest };
}

function jsonRoute(path: string, { ticket, form, rest }: Given): Route | null {
  const document = DOCUMENT.exec(path);
  if (document !== null)
    return { to: 'json', ticket, document: (document[1] ?? 'list') as JsonDocument, form };
  if (NEW_PAGE.test(path)) return { to: 'new-page', ticket, url: rest, form };
  const [, action, targetId] = TAB.exec(path) ?? [];
  if (action === undefined || targetId === undefined) return null;
  return { to: 'tab', ticket, action: action === 'close' ? 'close' : 'activate', targetId };
}

function vncRoute(ticket: string, rest: string | undefined): Route {
  if (rest === undefined) return { to: 'viewer-slash' };
  if (rest === '/') return { to: 'viewer', ticket };
  if (rest === '/state') return { to: 'viewer-state', ticket };
  return { to: 'screen', ticket };
}
