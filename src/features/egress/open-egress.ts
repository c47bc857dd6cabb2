import { createOwnAddresses, type OwnAddresses } from '#src/kernel/host/own-addresses.ts';
import { createNameResolver, type ResolveName } from '#src/kernel/host/resolve-name.ts';
import type { OpenEgress } from '#src/browsers/egress-endpoint.ts';
import { closedNetworks, type IsClosed } from './closed-networks.ts';
import type { ProxyPasswords } from './proxy-password.ts';

export type OpenEgressOptions = {
  /** Absent: a session whose proxy has a password gets no browser. */
  passwords?: Pick<ProxyPasswords, 'open'>;
  /** Closed beside private networks; default: this machine's own addresses. */
  own?: OwnAddresses;
  /** For tests: other name servers and other closed networks. */
  resolve?: ResolveName;
  isClosed?: IsClosed;
};

/** Opens the proxies of a server's browsers. The first one loads the library. */
export function createOpenEgress({
  passwords,
  resolve = createNameResolver(),
  own = createOwnAddresses([], resolve),
  isClosed = closedNetworks(own),
}: OpenEgressOptions = {}): OpenEgress {
  return async (rules, sessionId) => {
    const { openEgressProxy } = await import('./egress-proxy.ts');
    const sealed = rules.proxy?.sealedPassword;
    const { isOwnHost } = own;
    const common = { rules, resolve, isClosed, isOwnHost };
    if (sealed === undefined) return openEgressProxy(common);
    if (passwords === undefined) throw new Error('the password of the egress proxy is sealed');
    const password = passwords.open(sealed, sessionId);
    return openEgressProxy({ ...common, password });
  };
}
