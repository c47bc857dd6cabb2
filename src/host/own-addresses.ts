import { networkInterfaces } from 'node:os';
import { readAddress, readHost } from '#src/domain/egress/hosts.ts';

/**
 * What leads to this service itself: no connection that a caller asks for, as a webhook's or one of
 * a session with rules, goes there. It would come from inside, with the service's own address.
 */
export type OwnAddresses = {
  /** Whether a host, as it is named, is one of the service. */
  isOwnHost: (host: string) => boolean;
  /** Whether the address is one of this machine, or of a host of the service. */
  isOwnAddress(address: string): Promise<boolean>;
};

/** Names are looked up again after this long; a name that has no answer keeps its last one. */
const LOOK_EVERY_MS = 30_000;

/**
 * @param hosts names and addresses of the service, as its configuration has them
 * @param resolve the addresses of a name; none: no name server answers
 */
export function createOwnAddresses(
  hosts: readonly string[],
  resolve: (name: string) => Promise<readonly string[]>,
  now: () => number = Date.now,
): OwnAddresses {
  const known = hosts.map((host) => readHost(host)).filter((host) => host !== null);
  const texts = new Set(known.map(({ text }) => text));
  const names = known.filter(({ kind }) => kind === 'name').map(({ text }) => text);
  const addresses = new Map<string, readonly string[]>();
  let first: Promise<unknown> | null = null;
  let lookedAt = -Infinity;

  async function look(name: string): Promise<void> {
    const found = await resolve(name).catch(() => []);
    if (found.length > 0) addresses.set(name, found);
  }
  return {
    isOwnHost: (host) => texts.has(readHost(host)?.text ?? ''),

    async isOwnAddress(text) {
      const address = readAddress(text);
      if (address === null) return true;
      if (now() - lookedAt >= LOOK_EVERY_MS) {
        lookedAt = now();
        const looking = Promise.all(names.map(look));
        first ??= looking;
      }
      // Later ones are not waited for: what was found is used meanwhile.
      await first;
      // Read each time: an address may be added while the service runs.
      const interfaces = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
      const own = [
        ...interfaces.map((one) => one.address),
        ...texts,
        ...[...addresses.values()].flat(),
      ];
      return own.some((one) => {
        const found = readAddress(one);
        return found?.bits === address.bits && found.value === address.value;
      });
    },
  };
}
