import type { SessionsNetwork } from './network.ts';

/** Gives each container an address of its own; null: the engine chooses one. */
export type NextAddress = () => string | null;

/**
 * Gives out the addresses of the sessions' network in order, from a random one on: one that was
 * freed comes again after all others, where the engine would give it out at once. Addresses in use
 * are given too; the engine refuses them. `network` is the present one: it may be created again.
 */
export function createAddressRing(
  network: () => SessionsNetwork,
  random: () => number = Math.random,
): NextAddress {
  let subnet = '';
  let at = 0;
  return () => {
    const { subnet: now, gateway, isOurs } = network();
    if (!isOurs) return null;
    const [first, count] = rangeOf(now);
    if (now !== subnet) at = Math.floor(random() * count);
    subnet = now;
    at = (at + 1) % count;
    // The first address is the network's, the last one its broadcast address.
    if (textOf(first + 1 + at) === gateway) at = (at + 1) % count;
    return textOf(first + 1 + at);
  };
}

/** A subnet's address and the number of addresses for hosts, the gateway's included. */
function rangeOf(subnet: string): [first: number, count: number] {
  const [address = '', bits] = subnet.split('/');
  const first = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  return [first, 2 ** (32 - Number(bits)) - 2];
}

function textOf(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
}
