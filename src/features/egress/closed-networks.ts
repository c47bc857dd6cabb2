import { isPublicAddress } from '#src/kernel/domain/egress/networks.ts';
import type { OwnAddresses } from '#src/kernel/host/own-addresses.ts';

/** Whether no session reaches the address. It is an address in its canonical spelling. */
export type IsClosed = (address: string) => boolean | Promise<boolean>;

/**
 * Closes private networks, and the addresses of the service and of this machine, whatever they are:
 * its services must not be reached through a proxy that runs on it.
 */
export function closedNetworks({ isOwnAddress }: Pick<OwnAddresses, 'isOwnAddress'>): IsClosed {
  return async (text) => !isPublicAddress(text) || isOwnAddress(text);
}
