import { BlockList, isIPv6, type Server, type Socket } from 'node:net';
import { networkOf } from '#src/kernel/http/address.ts';

/** Open connections without a valid credential yet, of one address (IPv6: its /64) and of all. */
const UNPROVEN_PER_ADDRESS_MAX = 1_000;
const UNPROVEN_MAX = 2_000;

export type ConnectionBounds = {
  /** Connections of all kinds; Node closes a further one at once. */
  max: number;
  /** Addresses and networks that have to bound their clients themselves: deploy/nginx.conf. */
  trustedProxies: readonly string[];
  unprovenMax?: number;
  unprovenPerAddressMax?: number;
};

/** A connection, as a request on it knows it; with TLS its socket is not the server's own. */
type Peer = { remoteAddress?: string | undefined; remotePort?: number | undefined };

export type Connections = {
  /** A request with a valid credential came: the connection counts as unproven no more. */
  prove(peer: Peer): void;
};

/**
 * Bounds what strangers may hold: a connection without a valid request has up to 80 KiB of headers
 * in memory for 10 s, and is kept open for 72 s. Beyond a bound the oldest unproven connection is
 * closed, of that address or of all: that is the idle one rather than the one that is about to send
 * its request.
 */
export function boundConnections(server: Server, bounds: ConnectionBounds): Connections {
  const { unprovenMax = UNPROVEN_MAX, unprovenPerAddressMax = UNPROVEN_PER_ADDRESS_MAX } = bounds;
  const isTrusted = matcherOf(bounds.trustedProxies);
  const all = new Map<string, Socket>();
  const byNetwork = new Map<string, Map<string, Socket>>();

  function drop(peer: Peer): void {
    const key = keyOf(peer);
    if (!all.delete(key)) return;
    const network = networkOf(peer.remoteAddress ?? '');
    const own = byNetwork.get(network);
    own?.delete(key);
    if (own?.size === 0) byNetwork.delete(network);
  }
  function closeOldest(sockets: ReadonlyMap<string, Socket>): void {
    const [oldest] = sockets.values();
    if (oldest === undefined) return;
    drop(oldest);
    oldest.destroy();
  }
  server.maxConnections = bounds.max;
  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '', remotePort } = socket;
    if (remoteAddress === '' || isTrusted(remoteAddress)) return;
    // A socket that is closed has no address any more.
    const peer = { remoteAddress, remotePort };
    const network = networkOf(remoteAddress);
    const own = byNetwork.get(network) ?? new Map<string, Socket>();
    byNetwork.set(network, own);
    own.set(keyOf(peer), socket);
    all.set(keyOf(peer), socket);
    socket.once('close', () => drop(peer));
    if (own.size > unprovenPerAddressMax) closeOldest(own);
    else if (all.size > unprovenMax) closeOldest(all);
  });
  return {
    prove(peer) {
      if (all.size > 0) drop(peer);
    },
  };
}

function keyOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}

function matcherOf(networks: readonly string[]): (address: string) => boolean {
  if (networks.length === 0) return () => false;
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
