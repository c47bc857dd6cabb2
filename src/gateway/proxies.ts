import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';

/** Who a request is from, and how it came, by what proxies of ours say of it and nobody else. */
export type Proxies = {
  /** The client's address: the last one in X-Forwarded-For that is no proxy of ours. */
  clientOf(request: IncomingMessage): string;
  /** Whether the client came by TLS, be it only to the proxy. */
  isSecure(request: IncomingMessage): boolean;
};

/** Proxies between a client and us, at most: more are no setup of ours. */
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
    const said = headerOf(request, 'x-forwarded-for').split(',').slice(-HOPS_MAX);
    for (const before of said.toReversed()) {
      const address = plainAddress(before.trim());
      if (!isOurs(client) || address === '') break;
      client = address;
    }
    return client;
  }
  return {
    clientOf,
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

/** An IPv4 address is the same one where it came in by an IPv6 socket. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
