/**
 * The route of a request. `ticket` has the form of a ticket; it is not verified yet.
 */
export type Route =
  | { to: 'browser'; ticket: string }
  | { to: 'page'; ticket: string; targetId: string }
  | { to: 'json'; ticket: string; document: JsonDocument }
  | { to: 'screen'; ticket: string }
  | { to: 'viewer'; ticket: string }
  | { to: 'viewer-state'; ticket: string }
  | { to: 'viewer-slash' }
  | { to: 'viewer-file'; file: string };

/** The DevTools documents that the gateway serves. */
export type JsonDocument = 'version' | 'list' | 'protocol';

const TICKET = '([A-Za-z0-9_-]{24,314})';
const BROWSER = new RegExp(`^/devtools/browser/${TICKET}/?$`);
const PAGE = new RegExp(`^/devtools/page/${TICKET}/([A-Za-z0-9-]{1,64})/?$`);
/**
 * With and without `browser/`: clients append `/json/version/` to the address that they have.
 */
const JSON_DOCUMENT = new RegExp(
  `^/devtools/(?:browser/)?${TICKET}/json(?:/(version|list|protocol))?/?$`,
);
const VNC = new RegExp(`^/vnc/${TICKET}(/|/websockify/?|/state)?$`);
const VIEWER_FILE = /^\/viewer\/([A-Za-z0-9._/-]{1,128})$/;

/** Parses a request's target; null: no such route. The query is ignored. */
export function parseRoute(target: string): Route | null {
  const path = target.split('?', 1)[0] ?? '';
  let match = BROWSER.exec(path);
  if (match?.[1] !== undefined) return { to: 'browser', ticket: match[1] };
  match = PAGE.exec(path);
  if (match?.[1] !== undefined && match[2] !== undefined)
    return { to: 'page', ticket: match[1], targetId: match[2] };
  match = JSON_DOCUMENT.exec(path);
  if (match?.[1] !== undefined)
    return { to: 'json', ticket: match[1], document: (match[2] ?? 'list') as JsonDocument };
  match = VNC.exec(path);
  if (match?.[1] !== undefined) return vncRoute(match[1], match[2]);
  match = VIEWER_FILE.exec(path);
  if (match?.[1] !== undefined) return { to: 'viewer-file', file: match[1] };
  return null;
}

function vncRoute(ticket: string, rest: string | undefined): Route {
  if (rest === undefined) return { to: 'viewer-slash' };
  if (rest === '/') return { to: 'viewer', ticket };
  if (rest === '/state') return { to: 'viewer-state', ticket };
  return { to: 'screen', ticket };
}
