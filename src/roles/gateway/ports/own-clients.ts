import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { reject } from '#src/kernel/errors.ts';
import { ofAddress, type Refused } from '../access/ticket-admission.ts';

/** What browsers send with the requests of pages and of address bars, and other clients do not. */
const OF_PAGES = ['origin', 'referer', 'upgrade-insecure-requests'] as const;
/**
 * The one set of fetch metadata that is of no page and no address bar: chromedriver, which has
 * Chromium's network code, asks so. For a page's requests the site is never `none`, and for an
 * address bar's the mode is `navigate`.
 */
const OF_PROGRAMS = { site: 'none', mode: 'no-cors', dest: 'empty' };

/**
 * A port of a session takes no ticket, so that any page in any browser of that network could use
 * it: by its address, or by a name that is made to lead there. Null: it is no page that asks.
 * @param host the name of this address, besides IP addresses and localhost
 */
export function refusePages({ headers }: IncomingMessage, host: string): Refused | null {
  const name = URL.parse(`http://${headers.host ?? ''}`)?.hostname.replace(/^\[|\]$/g, '');
  const isNamed = name === 'localhost' || name === host.toLowerCase() || isIP(name ?? '') !== 0;
  const isOfPage = OF_PAGES.some((header) => headers[header] !== undefined);
  if (isNamed && !isOfPage && isOfProgram(headers)) return null;
  const message = 'This address is for automation; pages of a browser may not use it.';
  return ofAddress(reject('FORBIDDEN', {}, { message }));
}

function isOfProgram(headers: IncomingHttpHeaders): boolean {
  if (headers['sec-fetch-site'] === undefined) return true;
  return Object.entries(OF_PROGRAMS).every(
    ([name, value]) => headers[`sec-fetch-${name}`] === value,
  );
}
