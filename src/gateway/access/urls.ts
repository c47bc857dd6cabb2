import type { Tickets } from './ticket.ts';

/** The addresses of a session, for its own organization only: whoever has one has the browser. */
export type Urls = {
  /** `ws://host:port/devtools/browser/<ticket>` */
  cdpUrl(organizationId: string, sessionId: string): string;
  /** `wss://host:port/vnc/<ticket>/websockify` */
  vncUrl(organizationId: string, sessionId: string): string;
  /** The viewer page for people; with a password it asks for none (a fragment is never sent). */
  viewerUrl(organizationId: string, sessionId: string, vncPassword?: string): string;
};

/**
 * Builds URLs from the two public prefixes alone, whatever name a caller came by.
 * @throws RangeError where a prefix is no ws: or wss: URL.
 */
export function createUrls(options: { wsUrl: string; wssUrl: string; tickets: Tickets }): Urls {
  const { tickets } = options;
  const ws = publicPrefix(options.wsUrl);
  const wss = publicPrefix(options.wssUrl);
  // A certificate of our own would greet a person with a warning; on loopback plain is as safe.
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
 * A public address as the prefix of URLs: scheme, host, the port always written out (clients are
 * promised one, and `URL` drops a default one), path without its last slash.
 * @throws RangeError where it is no ws: or wss: URL.
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
