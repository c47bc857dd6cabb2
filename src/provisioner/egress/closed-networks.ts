import { networkInterfaces } from 'node:os';
import { isIn, readAddress, readRange, type Range } from '#src/domain/egress/hosts.ts';

/**
 * What no session reaches: the host's own networks and everything outside of the public internet
 * (RFC 6890): "this" network, private, shared by carriers, loopback, link-local with the clouds'
 * metadata services, protocol assignments, private relays, benchmarks, multicast, reserved.
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

/** The public addresses of IPv6; what lies outside of them is closed. */
const PUBLIC_SIX = '2000::/3';
/** Public by their number, but with an IPv4 address in them: Teredo and 6to4. */
const TUNNELS = ['2001::/32', '2002::/16'] as const;

/** Whether no session reaches the address. It is an address in its canonical spelling. */
export type IsClosed = (address: string) => boolean;

/**
 * Closes private networks, and all addresses of this machine, whatever they are: its services must
 * not be reached through a proxy that runs on it.
 * @param more further addresses, as that of the machine whose container this process runs in
 */
export function closedNetworks(more: readonly string[] = []): IsClosed {
  const four = UNREACHABLE.map(rangeOf);
  const publicSix = rangeOf(PUBLIC_SIX);
  const tunnels = TUNNELS.map(rangeOf);
  return (text) => {
    const address = readAddress(text);
    if (address === null) return true;
    // Read each time: an address may be added while the service runs.
    const own = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
    const isOwn = [...own.map((one) => one.address), ...more].some((one) => {
      const found = readAddress(one);
      return found?.bits === address.bits && found.value === address.value;
    });
    if (isOwn) return true;
    if (address.bits === 32) return four.some((range) => isIn(range, address));
    return !isIn(publicSix, address) || tunnels.some((range) => isIn(range, address));
  };
}

function rangeOf(text: string): Range {
  const range = readRange(text);
  if (range === null) throw new RangeError(`not a range: ${text}`);
  return range;
}
