import { checkImage } from './check-image.ts';
import type { EngineFacts } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';
import { isVersionAtLeast } from './check-parts.ts';

const DOCKER_MIN = '20.10';

/** Findings about the Docker engine: what browsers need to run, and to stay isolated. Pure. */
export function checkEngine(engine: EngineFacts): Finding[] {
  const { found, ok, warn, bad } = findingsOf('browsers');
  if (isVersionAtLeast(engine.version, DOCKER_MIN)) ok('engine', `Docker ${engine.version}`);
  else bad('engine', `Docker ${engine.version} is too old`, `${DOCKER_MIN} or later`);
  if (engine.hasSeccomp) ok('seccomp', 'the engine filters system calls');
  else
    bad(
      'seccomp',
      'the engine does not support seccomp',
      'use an engine and a kernel with seccomp; the service does not start without',
    );
  if (engine.filtersBridges)
    ok('bridges', 'packets between containers pass the host’s packet rules');
  else
    bad(
      'bridges',
      'bridge-nf-call-iptables is 0: sessions could reach each other',
      'modprobe br_netfilter; sysctl -w net.bridge.bridge-nf-call-iptables=1',
    );
  found.push(...checkImage(engine.image, 'the first start builds it'));
  if (engine.sandboxRefusal === '') ok('sandbox', 'Chromium can create its sandbox');
  else if (engine.sandboxRefusal !== null)
    bad(
      'sandbox',
      `a browser cannot create a user namespace: ${engine.sandboxRefusal}`,
      'sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1, and ' +
        'kernel.apparmor_restrict_unprivileged_userns=0 or a profile that allows it',
    );
  if (!engine.hasNetwork)
    warn('network', 'the network of the browsers does not exist yet', 'the first start creates it');
  else if (engine.reachable === '')
    ok('network', 'sessions cannot reach each other, the host or private networks (probed)');
  else if (engine.reachable !== null)
    bad(
      'network',
      `the network of the browsers is open: ${engine.reachable}`,
      'restart the provisioner, which sets the rules again; find what removes nftables tables',
    );
  return found;
}
