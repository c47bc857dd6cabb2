import { Resolver } from 'node:dns/promises';

/** The addresses of a name, IPv4 first; none: it has none, or no name server answers in time. */
export type ResolveName = (name: string) => Promise<readonly string[]>;

/** The longest wait for a name server, and the attempts. */
const TIMEOUT_MS = 2_000;
const TRIES = 2;
const none = (): string[] => [];

/**
 * Resolves by the name servers themselves: `dns.lookup` keeps one of the process's few threads for
 * each name, for as long as its name servers are silent, and a page may invent names.
 */
export function createNameResolver(): ResolveName {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  return async (name) => {
    if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1'];
    const found = await Promise.all([
      resolver.resolve4(name).catch(none),
      resolver.resolve6(name).catch(none),
    ]);
    return found.flat();
  };
}
