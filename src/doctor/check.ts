import type { ConfigFacts, InstallationFacts, ProbeFailure } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';
import { checkCertificates } from './check-certificates.ts';
import { checkCluster } from './check-cluster.ts';
import { checkEngine } from './check-engine.ts';
import { checkHost } from './check-host.ts';
import { checkEventStore } from './check-event-store.ts';
import { checkReadModel } from './check-read-model.ts';
import { checkSecrets } from './check-secrets.ts';

/** All findings about an installation, in the order in which to correct them. Pure. */
export function check(
  { config, host, log, readModel, engine, cluster, certificates }: InstallationFacts,
  now: number,
): Finding[] {
  return [
    ...checkHost(host),
    ...checkSecrets(config),
    ...checkCertificates(certificates, now),
    ...(isProbeFailure(log) ? away('log', log) : checkEventStore(log, config)),
    ...(isProbeFailure(readModel) ? away('read-model', readModel) : checkReadModel(readModel)),
    ...checkBrowsers(config, engine, cluster),
  ];
}

function checkBrowsers(
  config: ConfigFacts,
  engine: InstallationFacts['engine'],
  cluster: InstallationFacts['cluster'],
): Finding[] {
  const { found, ok, warn, bad } = findingsOf('browsers');
  if (!config.hasProvisioner) return found;
  if (engine !== null)
    return isProbeFailure(engine) ? away('browsers', engine) : checkEngine(engine);
  if (cluster !== null)
    return isProbeFailure(cluster) ? away('browsers', cluster) : checkCluster(cluster);
  if (config.browsers === 'simulated') {
    warn('kind', 'browsers are simulated', 'BROWSERS=docker runs real, isolated ones');
  } else if (config.unisolated !== 'development') {
    const isRefused = config.unisolated === 'refused';
    (isRefused ? bad : warn)(
      'kind',
      isRefused
        ? 'browsers would be processes of this machine, not isolated: the service does not start'
        : 'browsers are processes of this machine, not isolated: allowed by ALLOW_UNISOLATED',
      'BROWSERS=docker isolates sessions; a page in a process browser can read MASTER_KEY',
    );
  } else ok('kind', 'browsers are processes of this machine: for development');
  return found;
}

function away(part: string, { failure, advice, isBad }: ProbeFailure): Finding[] {
  const { found, warn, bad } = findingsOf(part);
  (isBad ? bad : warn)('answers', failure, advice);
  return found;
}

function isProbeFailure(facts: object): facts is ProbeFailure {
  return 'failure' in facts;
}
