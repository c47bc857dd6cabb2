import { isIPv6 } from 'node:net';

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
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
