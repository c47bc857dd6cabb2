import type { SessionState } from '#events/session.ts';
import { EPOCH_MAX, holderOf, type Grant, type TicketKind, type Tickets } from './ticket.ts';

/**
 * A session's addresses. Each is a credential for the browser, of the caller that it is issued to:
 * `keyHash` is the SHA-256 (hex) of the caller's API key, null if it has none: the address ends
 * with the key. `grant`: it ends with the share or hand-off, too.
 */
export type Urls = {
  /** `ws://host:port/devtools/browser/<ticket>` */
  cdpUrl(session: RotatedSession, keyHash: string | null): string;
  /** `ws://host:port/devtools/bidi/<ticket>`, with the same ticket. */
  bidiUrl(session: RotatedSession, keyHash: string | null): string;
  /** `wss://host:port/vnc/<ticket>/websockify` */
  vncUrl(session: RotatedSession, keyHash: string | null, grant?: Grant): string;
  /** The viewer page. The password goes into the fragment, which browsers never send. */
  viewerUrl(
    session: RotatedSession,
    keyHash: string | null,
    vncPassword?: string,
    grant?: Grant,
  ): string;
};

/**
 * Where a gateway takes WebDriver's commands for a session, of a caller whose key or token has just
 * been checked: no rotation ends it, so it never leaves the service.
 */
export type DriverUrl = (
  organizationId: string,
  sessionId: string,
  keyHash: string | null,
) => string;

/** @param gatewayUrl `http://` or `https://` address by which this process reaches a gateway */
export function createDriverUrl(gatewayUrl: string, tickets: Tickets): DriverUrl {
  const prefix = gatewayUrl.replace(/\/+$/, '');
  return (organizationId, sessionId, keyHash) => {
    const holder = keyHash === null ? null : holderOf(keyHash);
    const to = { epoch: EPOCH_MAX, holder };
    return `${prefix}/webdriver/${tickets.issue('cdp', organizationId, sessionId, to)}`;
  };
}

/** What an address needs of a session's state. */
type RotatedSession = Pick<SessionState, 'organizationId' | 'id' | 'accessEpoch'>;

/**
 * Builds URLs from the two public prefixes only, not from a request's host name.
 * @throws RangeError if a prefix is no ws: or wss: URL.
 */
export function createUrls(options: { wsUrl: string; wssUrl: string; tickets: Tickets }): Urls {
  const { tickets } = options;
  const ws = publicPrefix(options.wsUrl);
  const wss = publicPrefix(options.wssUrl);
  // Browsers warn of the self-signed certificate; on loopback plain HTTP is as safe.
  const page = (isLoopback(ws) ? ws : wss).replace(/^ws/, 'http');

  function ticketOf(
    kind: TicketKind,
    { organizationId, id, accessEpoch = 0 }: RotatedSession,
    keyHash: string | null,
    grant: Grant | null = null,
  ): string {
    const holder = keyHash === null ? null : holderOf(keyHash);
    return tickets.issue(kind, organizationId, id, { epoch: accessEpoch, holder, grant });
  }
  return {
    cdpUrl: (session, keyHash) => `${ws}/devtools/browser/${ticketOf('cdp', session, keyHash)}`,
    bidiUrl: (session, keyHash) => `${ws}/devtools/bidi/${ticketOf('cdp', session, keyHash)}`,
    vncUrl: (session, keyHash, grant) =>
      `${wss}/vnc/${ticketOf('vnc', session, keyHash, grant)}/websockify`,
    viewerUrl(session, keyHash, vncPassword, grant) {
      const url = `${page}/vnc/${ticketOf('vnc', session, keyHash, grant)}/`;
      return vncPassword === undefined ? url : `${url}#password=${encodeURIComponent(vncPassword)}`;
    },
  };
}

/**
 * A public address as the prefix of URLs: scheme, host, port (always written out: the API promises
 * one, and `URL` drops default ports), path without its last slash.
 * @throws RangeError if it is no ws: or wss: URL.
 */
export function publicPrefix(address: string): string {
  const url = URL.parse(address);
  if (url === null || (url.protocol !== 'ws:' && url.protocol !== 'wss:'))
    throw new RangeError(`not a ws: or wss: URL: ${address}`);
  const port = url.port || (url.protocol === 'ws:' ? '80' : '443');
  return `${url.protocol}//${url.hostname}:${port}${url.pathname.replace(/\/+$/, '')}`;
}

function isLoopback(prefix: string): boolean {
  const { hostname } = new URL(prefix);
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.');
}
