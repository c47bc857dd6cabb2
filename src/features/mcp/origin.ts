import { isIP } from 'node:net';
import { reject, type Rejection } from '#src/kernel/errors.ts';

/**
 * Refuses a page of another place: a browser says by `Origin` which page sends a request, also if
 * the page's name was made to lead to this machine (DNS rebinding). Programs send none. An address,
 * `localhost` and the configured names are this machine's.
 */
export function refuseForeignPage(
  origin: string | undefined,
  ownHosts: readonly string[],
): Rejection | null {
  if (origin === undefined || isOwn(origin, ownHosts)) return null;
  const message = 'Pages of other places may not use the MCP server.';
  return reject('FORBIDDEN', { origin }, { message });
}

function isOwn(origin: string, ownHosts: readonly string[]): boolean {
  if (!URL.canParse(origin)) return false;
  const name = new URL(origin).hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(name) !== 0 || /^(.+\.)?localhost$/.test(name) || ownHosts.includes(name);
}
