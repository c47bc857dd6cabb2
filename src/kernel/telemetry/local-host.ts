import { isIP } from 'node:net';
import { reject, type Rejection } from '#src/kernel/errors.ts';

/** A request for what only this machine, or a monitor, is to read. */
export type MonitorRequest = {
  /** The client's address; for the metrics the TCP peer's, not one from a proxy's header. */
  address: string | undefined;
  headers: Readonly<Record<string, string | string[] | undefined>>;
};

/**
 * Refuses a client on this machine that asks by a name which is not this machine's: a page in a
 * browser here, whose name was made to lead to 127.0.0.1 (DNS rebinding), would read the answer as
 * its own. An address as the name is no page's, `localhost` leads nowhere else.
 * @param ownHosts names from the configuration
 */
export function refuseReboundName(
  { address = '', headers }: MonitorRequest,
  ownHosts: readonly string[],
  path: string,
): Rejection | null {
  const { host } = headers;
  if (!isLoopback(address) || typeof host !== 'string') return null;
  const name = nameIn(host);
  const isOwn =
    isIP(name) !== 0 || /^(.+\.)?localhost$/.test(name) || ownHosts.some((own) => own === name);
  if (isOwn) return null;
  const message = 'From this machine, this is served by its addresses and configured names alone.';
  return reject('NOT_FOUND', { path, host }, { message });
}

export function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./i.test(address);
}

/** The name of a Host header, without port and brackets, in lower case. */
function nameIn(host: string): string {
  const name = host.startsWith('[') ? host.slice(1).split(']', 1)[0] : host.split(':', 1)[0];
  return (name ?? '').toLowerCase();
}
