import { networkInterfaces } from 'node:os';
import { readAddress } from '#src/domain/egress/hosts.ts';
import { isPublicAddress } from '#src/domain/egress/networks.ts';

/** Whether no session reaches the address. It is an address in its canonical spelling. */
export type IsClosed = (address: string) => boolean;

/**
 * Closes private networks, and all addresses of this machine, whatever they are: its services must
 * not be reached through a proxy that runs on it.
 * @param more further addresses, as that of the machine whose container this process runs in
 */
export function closedNetworks(more: readonly string[] = []): IsClosed {
  return (text) => {
    const address = readAddress(text);
    if (address === null) return true;
    // Read each time: an address may be added while the service runs.
    const own = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
    const isOwn = [...own.map((one) => one.address), ...more].some((one) => {
      const found = readAddress(one);
      return found?.bits === address.bits && found.value === address.value;
    });
    return isOwn || !isPublicAddress(text);
  };
}
