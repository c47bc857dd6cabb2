import { readHost } from '#src/kernel/domain/egress/hosts.ts';
import { isPublicAddress } from '#src/kernel/domain/egress/networks.ts';
import type { OwnAddresses } from '#src/kernel/host/own-addresses.ts';
import type { ResolveName } from '#src/kernel/host/resolve-name.ts';

/** Which URLs deliveries go to. */
export type AddressRules = {
  /** WEBHOOKS_ALLOW_PRIVATE: addresses inside, and http, are allowed too. */
  allowsPrivate: boolean;
  /** The addresses of a name; none: it has none, or no name server answers in time. */
  resolve: ResolveName;
  /** What leads to this service: a delivery would come in by its front door. */
  own: OwnAddresses;
};

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
