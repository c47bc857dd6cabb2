import { networkInterfaces } from 'node:os';
import { readAddress, readHost, type Address } from '#src/kernel/domain/egress/hosts.ts';
import type { ResolveName } from './resolve-name.ts';

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

/** Addresses of a name are looked up again once they are older. */
const LOOK_EVERY_MS = 30_000;
/** And sooner while none are known: the service may start before its name servers. */
const LOOK_FIRST_MS = 2_000;

/**
 * @param hosts names and addresses of the service, as its configuration has them
 */
export function createOwnAddresses(
  hosts: readonly string[],
  resolve: ResolveName,
  now: () => number = Date.now,
): OwnAddresses {
  const known = hosts.map((host) => readHost(host)).filter((host) => host !== null);
  const texts = new Set(known.map(({ text }) => text));
  const names = known
    .filter(({ kind }) => kind === 'name')
    .map(({ text }) => createLook(async () => resolve(text), now));

  return {
    isOwnHost: (host) => texts.has(readHost(host)?.text ?? ''),

    async isOwnAddress(text) {
      const address = readAddress(text);
      if (address === null) return true;
      // Read each time: an address may be added while the service runs.
      const interfaces = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
      const here = [...interfaces.map((one) => one.address), ...texts];
      if (here.some((one) => isSame(address, one))) return true;
      const found = await Promise.all(names.map(async (look) => look()));
      return found.flat().some((one) => isSame(address, one));
    },
  };
}

/**
 * The addresses of a name, looked up when they are too old; who asks meanwhile waits for the same
 * look. IPv4 and IPv6 are two answers: one that is missing leaves the addresses that were known.
 */
function createLook(
  resolve: () => Promise<readonly string[]>,
  now: () => number,
): () => Promise<string[]> {
  let [four, six]: [string[], string[]] = [[], []];
  let dueAt = -Infinity;
  let looking: Promise<void> | null = null;

  async function look(): Promise<void> {
    const found = await resolve().catch(() => []);
    const [newSix, newFour] = [found.filter(isSix), found.filter((one) => !isSix(one))];
    if (newFour.length > 0) four = newFour;
    if (newSix.length > 0) six = newSix;
    const isKnown = four.length + six.length > 0;
    dueAt = now() + (isKnown ? LOOK_EVERY_MS : LOOK_FIRST_MS);
    looking = null;
  }
  return async () => {
    if (now() >= dueAt) looking ??= look();
    await looking;
    return [...four, ...six];
  };
}

function isSix(address: string): boolean {
  return address.includes(':');
}

function isSame(address: Address, text: string): boolean {
  const other = readAddress(text);
  return other?.bits === address.bits && other.value === address.value;
}
