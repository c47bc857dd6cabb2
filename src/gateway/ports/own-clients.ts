import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { reject } from '#src/errors.ts';
import { ofAddress, type Refused } from '../access/ticket-admission.ts';

/** What browsers send with the requests of pages and of address bars, and other clients do not. */
const OF_PAGES = ['origin', 'referer', 'sec-fetch-site', 'upgrade-insecure-requests'] as const;

/**
 * A port of a session takes no ticket, so that any page in any browser of that network could use
 * it: by its address, or by a name that is made to lead there. Null: it is no page that asks.
 * @param host the name of this address, besides IP addresses and localhost
 */
export function refusePages({ headers }: IncomingMessage, host: string): Refused | null {
  const name = URL.parse(`http://${headers.host ?? ''}`)?.hostname.replace(/^\[|\]$/g, '');
  const isNamed = name === 'localhost' || name === host.toLowerCase() || isIP(name ?? '') !== 0;
  if (isNamed && OF_PAGES.every((header) => headers[header] === undefined)) return null;
  const message = 'This address is for automation; pages of a browser may not use it.';
  return ofAddress(reject('FORBIDDEN', {}, { message }));
}
