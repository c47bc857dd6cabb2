import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';
import { plainAddress } from '#src/kernel/http/address.ts';

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
