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
    ...checkDriver(host.browserPrograms),
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

/** Chromedriver drives Chromium of its own major version alone. */
function checkDriver(programs: InstallationFacts['host']['browserPrograms']): Finding[] {
  const { found, ok, warn, bad } = findingsOf('browsers');
  if (programs === null) return found;
  const { chromium, chromedriver } = programs;
  const advice =
    'install chromedriver of the same release as Chromium (Debian: chromium-driver), ' +
    'or name it in CHROMEDRIVER';
  if ('missing' in chromedriver) {
    const what = `${chromedriver.missing}: sessions have no WebDriver, so /wd/hub does not work`;
    warn('driver', what, advice);
  } else if (chromedriver.version === null)
    bad('driver', `${chromedriver.path} does not run or tells no version`, advice);
  else if ('missing' in chromium || chromium.version === null) {
    const what = 'missing' in chromium ? chromium.missing : `${chromium.path} tells no version`;
    warn('driver', `chromedriver ${chromedriver.version}; ${what}`, 'look at Chromium first');
  } else {
    const what = `chromedriver ${chromedriver.version}, Chromium ${chromium.version}`;
    const isSame = majorOf(chromedriver.version) === majorOf(chromium.version);
    if (isSame) ok('driver', what);
    else bad('driver', `${what}: New Session at /wd/hub fails`, advice);
  }
  return found;
}

const majorOf = (version: string): string => version.slice(0, version.indexOf('.'));

function away(part: string, { failure, advice, isBad }: ProbeFailure): Finding[] {
  const { found, warn, bad } = findingsOf(part);
  (isBad ? bad : warn)('answers', failure, advice);
  return found;
}

function isProbeFailure(facts: object): facts is ProbeFailure {
  return 'failure' in facts;
}
