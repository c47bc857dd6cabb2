import { Resolver } from 'node:dns/promises';
import { readHost } from '#src/domain/egress/hosts.ts';
import { isPublicAddress } from '#src/domain/egress/networks.ts';

/** Which URLs deliveries go to. */
export type AddressRules = {
  /** WEBHOOKS_ALLOW_PRIVATE: addresses inside, and http, are allowed too. */
  allowsPrivate: boolean;
  /** The addresses of a name; none: it has none, or no name server answers in time. */
  resolve: ResolveName;
  /** What leads to this service: a delivery would come in by its front door. */
  own: {
    isOwnHost: (host: string) => boolean;
    isOwnAddress(address: string): Promise<boolean>;
  };
};
export type ResolveName = (name: string) => Promise<readonly string[]>;

/** The longest wait for a name server, and the attempts. */
const TIMEOUT_MS = 2_000;
const TRIES = 2;
const none = (): string[] => [];

/**
 * Resolves by the name servers themselves: `dns.lookup` keeps one of the process's few threads for
 * each name, for as long as its name servers are silent.
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

/** Why a URL is refused. */
export type UrlFlaw = 'not-a-url' | 'not-https' | 'inside' | 'own';

/** What is wrong with the URL without asking a name server; null: nothing. */
export function flawOf(
  text: string,
  { allowsPrivate, own }: Pick<AddressRules, 'allowsPrivate' | 'own'>,
): UrlFlaw | null {
  const url = URL.parse(text);
  if (url === null || url.hostname === '' || url.hash !== '') return 'not-a-url';
  const isHttps = url.protocol === 'https:';
  if (!isHttps && url.protocol !== 'http:') return 'not-a-url';
  if (!isHttps && !allowsPrivate) return 'not-https';
  const host = readHost(url.hostname);
  if (host === null) return 'not-a-url';
  if (allowsPrivate) return null;
  if (host.kind === 'address' && !isPublicAddress(host.text)) return 'inside';
  return own.isOwnHost(host.text) ? 'own' : null;
}

/** The same, and whether the name leads inside now; it may do so later, and is looked at again. */
export async function flawByName(text: string, rules: AddressRules): Promise<UrlFlaw | null> {
  const flaw = flawOf(text, rules);
  if (flaw !== null || rules.allowsPrivate) return flaw;
  return (await reachableAddresses(new URL(text).hostname, rules)).flaw;
}

/** `flaw`: why nothing connects. Without addresses and a flaw: the name has none. */
export type Reachable = { addresses: readonly string[]; flaw: 'inside' | 'own' | null };

/**
 * The addresses to connect to. All of them are allowed, or there are none: a name with one address
 * inside, or of this service, is refused as a whole.
 */
export async function reachableAddresses(
  hostname: string,
  { allowsPrivate, resolve, own }: AddressRules,
): Promise<Reachable> {
  const host = readHost(hostname);
  if (host === null) return { addresses: [], flaw: 'inside' };
  const found = host.kind === 'address' ? [host.text] : await resolve(host.text);
  if (allowsPrivate) return { addresses: found, flaw: null };
  if (found.some((address) => !isPublicAddress(address))) return { addresses: [], flaw: 'inside' };
  const isOwn = await Promise.all(found.map((address) => own.isOwnAddress(address)));
  if (own.isOwnHost(host.text) || isOwn.includes(true)) return { addresses: [], flaw: 'own' };
  return { addresses: found, flaw: null };
}

/** Scheme, host and port: what of a URL holds no credentials. */
export function shownAddress(url: string): string {
  return new URL(url).origin;
}
