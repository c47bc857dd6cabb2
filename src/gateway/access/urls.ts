import type { Tickets } from './ticket.ts';

/** A session's addresses. Each is a credential for the browser: for its organization only. */
export type Urls = {
  /** `ws://host:port/devtools/browser/<ticket>` */
  cdpUrl(organizationId: string, sessionId: string): string;
  /** `wss://host:port/vnc/<ticket>/websockify` */
  vncUrl(organizationId: string, sessionId: string): string;
  /** The viewer page. The password goes into the fragment, which browsers never send. */
  viewerUrl(organizationId: string, sessionId: string, vncPassword?: string): string;
};

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
  return {
    cdpUrl: (organizationId, sessionId) =>
      `${ws}/devtools/browser/${tickets.issue('cdp', organizationId, sessionId)}`,
    vncUrl: (organizationId, sessionId) =>
      `${wss}/vnc/${tickets.issue('vnc', organizationId, sessionId)}/websockify`,
    viewerUrl(organizationId, sessionId, vncPassword) {
      const url = `${page}/vnc/${tickets.issue('vnc', organizationId, sessionId)}/`;
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
