import type { EngineFacts } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';
import { isVersionAtLeast } from './check-parts.ts';

const DOCKER_MIN = '20.10';

/** What an engine needs so that browsers run on it, and stay where they are. Pure. */
export function judgeEngine(engine: EngineFacts): Finding[] {
  const { found, ok, warn, bad } = findingsOf('browsers');
  if (isVersionAtLeast(engine.version, DOCKER_MIN)) ok('engine', `Docker ${engine.version}`);
  else bad('engine', `Docker ${engine.version} is too old`, `${DOCKER_MIN} or later`);
  if (engine.hasSeccomp) ok('seccomp', 'the engine filters system calls');
  else
    bad('seccomp', 'the engine knows no seccomp', 'an engine and a kernel with seccomp: no start');
  if (engine.filtersBridges) ok('bridges', 'packets between containers pass the host’s rules');
  else
    bad(
      'bridges',
      'bridge-nf-call-iptables is 0: sessions could reach each other',
      'modprobe br_netfilter; sysctl -w net.bridge.bridge-nf-call-iptables=1',
    );
  if (!engine.hasImage)
    warn('image', 'the browsers’ image is not there yet', 'the first start builds it');
  else ok('image', 'the browsers’ image is there');
  if (engine.sandboxRefusal === '') ok('sandbox', 'Chromium can make its own sandbox');
  else if (engine.sandboxRefusal !== null)
    bad(
      'sandbox',
      `a browser may make no user namespace: ${engine.sandboxRefusal}`,
      'sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1, and ' +
        'kernel.apparmor_restrict_unprivileged_userns=0 or a profile that allows it',
    );
  if (!engine.hasNetwork)
    warn('network', 'there is no network of sessions yet', 'the first start makes it');
  else if (engine.reachable === '')
    ok('network', 'sessions reach neither each other, nor the host, nor private networks: tried');
  else if (engine.reachable !== null)
    bad(
      'network',
      `the sessions’ network is open: ${engine.reachable}`,
      'restart the provisioner, which sets the rules again; see what removes nftables tables',
    );
  return found;
}
