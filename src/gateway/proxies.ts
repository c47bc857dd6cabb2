import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';

/** Client address and TLS of a request, by the headers of trusted proxies only. */
export type Proxies = {
  /** The client's address: the last one in X-Forwarded-For that is not a trusted proxy. */
  clientOf(request: IncomingMessage): string;
  /** Whether this is the address of a proxy that is trusted. */
  isTrusted(address: string): boolean;
  /** Whether the client used TLS, to the gateway or to the proxy. */
  isSecure(request: IncomingMessage): boolean;
};

/** Proxies between a client and the gateway, at most. */
const HOPS_MAX = 10;

/** @param networks addresses and networks of proxies, `10.0.0.0/8` */
export function trustProxies(networks: readonly string[]): Proxies {
  const trusted = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(bits), family);
  }
  const isOurs = (address: string) => trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');

  function clientOf(request: IncomingMessage): string {
    let client = plainAddress(request.socket.remoteAddress ?? '');
    const forwarded = headerOf(request, 'x-forwarded-for').split(',').slice(-HOPS_MAX);
    for (const before of forwarded.toReversed()) {
      const address = plainAddress(before.trim());
      if (!isOurs(client) || address === '') break;
      client = address;
    }
    return client;
  }
  return {
    clientOf,
    isTrusted: (address) => isOurs(plainAddress(address)),
    isSecure(request) {
      if ('encrypted' in request.socket) return true;
      return (
        isOurs(plainAddress(request.socket.remoteAddress ?? '')) &&
        headerOf(request, 'x-forwarded-proto').split(',')[0]?.trim() === 'https'
      );
    },
  };
}

function headerOf({ headers }: IncomingMessage, name: string): string {
  const value = headers[name] ?? '';
  return Array.isArray(value) ? value.join(',') : value;
}

/**
 * What limits by address count as one client: an IPv4 address, or the 64 bits of an IPv6 address
 * that its owner is given; the other 64 are the owner's choice.
 */
export function networkOf(address: string): string {
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return plain;
  const [start = '', end = ''] = plain.split('::').map((half) => half.split('%', 1)[0]);
  const groups = start === '' ? [] : start.split(':');
  const after = end === '' ? [] : end.split(':');
  while (plain.includes('::') && groups.length + after.length < 8) groups.push('0');
  const network = [...groups, ...after].slice(0, 4).map((group) => Number.parseInt(group, 16));
  return `${network.map((group) => group.toString(16)).join(':')}::/64`;
}

/** Removes the IPv6 prefix of an IPv4 address: `::ffff:10.0.0.1` is `10.0.0.1`. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
