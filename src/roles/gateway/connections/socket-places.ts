import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { createPlaces } from '#src/kernel/async/places.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { networkOf } from '#src/kernel/http/address.ts';
import type { Proxies } from '../proxies.ts';

/**
 * Bounds what one client address holds without a ticket being asked for: sockets that are no
 * connection to a browser (yet). A proxy's socket is shared by many clients; behind a trusted one,
 * a client's open requests are counted in place of its sockets.
 */
export type SocketPlaces = {
  /** Counts a new socket until it is closed or `joined`; false: its address holds too many. */
  enter(socket: Socket): boolean;
  /**
   * Counts a request that came through a proxy, until the returned function is called. A rejection:
   * its client has too many open.
   */
  begin(request: IncomingMessage): (() => void) | Rejection;
  /** The socket became a connection, which has limits of its own. */
  joined(socket: Socket): void;
};

/** @param max sockets, or requests through proxies, of one address */
export function createSocketPlaces(max: number, proxies: Proxies): SocketPlaces {
  const places = createPlaces({ max: Infinity, perOwner: max });
  /** How to give back a direct socket's place, by the socket's other end. */
  const direct = new Map<string, Disposable>();

  return {
    enter(socket) {
      const { remoteAddress } = socket;
      if (remoteAddress === undefined) return false; // it is closed already
      if (proxies.isTrusted(remoteAddress)) return true;
      const place = places.take(networkOf(remoteAddress));
      if ('refused' in place) return false;
      const key = endOf(socket);
      direct.set(key, place);
      socket.once('close', () => {
        place[Symbol.dispose]();
        if (direct.get(key) === place) direct.delete(key);
      });
      return true;
    },
    begin(request) {
      if (!proxies.isTrusted(request.socket.remoteAddress ?? '')) return () => undefined;
      const place = places.take(networkOf(proxies.clientOf(request)));
      if (!('refused' in place)) return () => place[Symbol.dispose]();
      const message = 'Too many requests of this address are open.';
      const more = { message, retryAfterSeconds: 5 };
      return reject('RATE_LIMIT_EXCEEDED', { of: 'address', limit: max }, more);
    },
    joined: (socket) => direct.get(endOf(socket))?.[Symbol.dispose](),
  };
}

/** The same for a TLS socket and for the TCP socket below it. */
function endOf({ remoteAddress, remotePort, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localPort}`;
}
