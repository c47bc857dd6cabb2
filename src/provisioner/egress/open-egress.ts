import type { EgressRules } from '#events/egress.ts';
import { closedNetworks, type IsClosed } from './closed-networks.ts';
import type { EgressProxy } from './egress-proxy.ts';
import type { ProxyPasswords } from './proxy-password.ts';
import { createResolver, type ResolveHost } from './resolve-host.ts';

/** Opens the proxy of the browser of a session with these rules. */
export type OpenEgress = (rules: EgressRules, sessionId: string) => Promise<EgressProxy>;

export type OpenEgressOptions = {
  /** Absent: a session whose proxy has a password gets no browser. */
  passwords?: Pick<ProxyPasswords, 'open'>;
  /** Addresses that are closed beside private networks and this machine's own. */
  closed?: readonly string[];
  /** For tests: other name servers and other closed networks. */
  resolve?: ResolveHost;
  isClosed?: IsClosed;
};

/** Opens the proxies of a server's browsers. The first one loads the library. */
export function createOpenEgress({
  passwords,
  closed = [],
  resolve = createResolver(),
  isClosed = closedNetworks(closed),
}: OpenEgressOptions = {}): OpenEgress {
  return async (rules, sessionId) => {
    const { openEgressProxy } = await import('./egress-proxy.ts');
    const sealed = rules.proxy?.sealedPassword;
    if (sealed === undefined) return openEgressProxy({ rules, resolve, isClosed });
    if (passwords === undefined) throw new Error('the password of the egress proxy is sealed');
    const password = passwords.open(sealed, sessionId);
    return openEgressProxy({ rules, password, resolve, isClosed });
  };
}
