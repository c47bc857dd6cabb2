import type { ServerAddition, ServerProcess } from '../feature.ts';
import { createOpenEgress } from './open-egress.ts';
import { createProxyPasswords } from './proxy-password.ts';

export function egressOfServer({
  masterKeys,
  resolveName: resolve,
  ownAddresses: own,
}: ServerProcess): ServerAddition {
  const passwords = createProxyPasswords(masterKeys);
  return { openEgress: createOpenEgress({ passwords, resolve, own }) };
}
