import type { Server } from 'node:http';
import { BlockList, isIPv6, type Socket } from 'node:net';
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
type Peer = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localPort'>;

export type Connections = {
  /**
   * A request with a valid credential came: the connection counts as unproven no more, but for the
   * owner of that credential.
   */
  prove(peer: Peer, owner: string): void;
};

type Held = {
  readonly socket: Socket;
  readonly key: string;
  readonly network: string;
  /** Of the last valid credential; null: there was none yet. */
  owner: string | null;
  openRequests: number;
};

/**
 * Bounds what strangers may hold: a connection without a valid request has up to 80 KiB of headers
 * in memory for 10 s, and is kept open for 72 s. Beyond a bound the oldest unproven connection is
 * closed, of that address or of all: that is the idle one rather than the one that is about to send
 * its request.
 *
 * The places of strangers are theirs alone. Where all other connections are too many for the rest,
 * the one that is idle for longest is closed, of the owner that has the most idle ones. One with an
 * open request is never closed: what a client may have open is bounded by the rate limit, by the
 * maximum of event streams and by the places of transfers.
 */
export function boundConnections(server: Server, bounds: ConnectionBounds): Connections {
  const { unprovenMax = UNPROVEN_MAX, unprovenPerAddressMax = UNPROVEN_PER_ADDRESS_MAX } = bounds;
  const provenMax = bounds.max - unprovenMax;
  const isTrusted = matcherOf(bounds.trustedProxies);
  const all = new Map<string, Held>();
  const unproven = new Set<Held>();
  const unprovenByNetwork = createGroups();
  /** Proven ones without an open request, by owner, the longest idle first. */
  const idleByOwner = createGroups();

  function leaveUnproven(held: Held): void {
    unproven.delete(held);
    unprovenByNetwork.remove(held.network, held);
  }
  function forget(held: Held): void {
    if (all.get(held.key) !== held) return;
    all.delete(held.key);
    if (held.owner === null) leaveUnproven(held);
    else idleByOwner.remove(held.owner, held);
  }
  function closeFirst(group: Iterable<Held>): void {
    for (const held of group) {
      forget(held);
      held.socket.destroy();
      return;
    }
  }
  function boundProven(): void {
    if (all.size - unproven.size > provenMax) closeFirst(idleByOwner.largest());
  }
  function answered(held: Held): void {
    held.openRequests -= 1;
    if (held.openRequests > 0 || held.owner === null || held.socket.destroyed) return;
    idleByOwner.add(held.owner, held);
    boundProven();
  }
  server.maxConnections = bounds.max;
  server.on('connection', (socket: Socket) => {
    // A socket that is closed has no address any more.
    if (socket.remoteAddress === undefined || isTrusted(socket.remoteAddress)) return;
    const network = networkOf(socket.remoteAddress);
    const held: Held = { socket, key: keyOf(socket), network, owner: null, openRequests: 0 };
    all.set(held.key, held);
    unproven.add(held);
    const own = unprovenByNetwork.add(network, held);
    socket.once('close', () => forget(held));
    if (own.size > unprovenPerAddressMax) closeFirst(own);
    else if (unproven.size > unprovenMax) closeFirst(unproven);
  });
  // Before the listener that answers, which may prove the connection at once.
  server.prependListener('request', (request, response) => {
    const held = all.size === 0 ? undefined : all.get(keyOf(request.socket));
    if (held === undefined) return;
    held.openRequests += 1;
    if (held.owner !== null) idleByOwner.remove(held.owner, held);
    response.once('close', () => answered(held));
  });
  return {
    prove(peer, owner) {
      const held = all.size === 0 ? undefined : all.get(keyOf(peer));
      if (held === undefined || held.owner === owner) return;
      if (held.owner === null) leaveUnproven(held);
      held.owner = owner; // it has an open request, and is among the idle ones of none
      boundProven();
    },
  };
}

/** Sets of connections by a name, in the order of their addition. */
function createGroups() {
  const groups = new Map<string, Set<Held>>();
  return {
    /** @returns the group */
    add(name: string, held: Held): ReadonlySet<Held> {
      const group = groups.get(name) ?? new Set();
      groups.set(name, group.add(held));
      return group;
    },
    remove(name: string, held: Held): void {
      const group = groups.get(name);
      group?.delete(held);
      if (group?.size === 0) groups.delete(name);
    },
    largest(): ReadonlySet<Held> {
      let largest: ReadonlySet<Held> = new Set();
      for (const group of groups.values()) if (group.size > largest.size) largest = group;
      return largest;
    },
  };
}

function keyOf({ remoteAddress, remotePort, localPort }: Peer): string {
  return `${remoteAddress} ${remotePort} ${localPort}`;
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
