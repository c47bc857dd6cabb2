import { isIn, readAddress, readRange, type Range } from './hosts.ts';

/**
 * What lies outside of the public internet (RFC 6890): "this" network, private, shared by carriers,
 * loopback, link-local with the clouds' metadata services, protocol assignments, private relays,
 * benchmarks, multicast, reserved.
 */
export const UNREACHABLE = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const;

const four = UNREACHABLE.map(rangeOf);
/** The public addresses of IPv6; what lies outside of them is closed. */
const publicSix = rangeOf('2000::/3');
/** Public by their number, but with an IPv4 address in them: Teredo and 6to4. */
const tunnels = ['2001::/32', '2002::/16'].map(rangeOf);

/** Whether the address is one of the public internet; false for what is no address. */
export function isPublicAddress(text: string): boolean {
  const address = readAddress(text);
  if (address === null) return false;
  if (address.bits === 32) return !four.some((range) => isIn(range, address));
  return isIn(publicSix, address) && !tunnels.some((range) => isIn(range, address));
}

function rangeOf(text: string): Range {
  const range = readRange(text);
  if (range === null) throw new RangeError(`not a range: ${text}`);
  return range;
}
