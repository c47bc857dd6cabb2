import { checkImage } from './check-image.ts';
import { isVersionAtLeast } from './check-parts.ts';
import type { ClusterFacts, QuotaFacts } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';

/** The first whose protocol can end the input of a program in a Pod, a release before included. */
const KUBERNETES_MIN = '1.31';
/** Of a quota; beyond it browsers are about to be refused. */
const MUCH = 0.9;

/** Findings about a namespace: what its browsers need to run, and to stay isolated. Pure. */
export function checkCluster(cluster: ClusterFacts): Finding[] {
  const { found, ok, warn, bad } = findingsOf('browsers');
  const version = cluster.version.replace(/^v/, '');
  const what = `Kubernetes ${version}, namespace ${cluster.namespace}`;
  if (isVersionAtLeast(version, KUBERNETES_MIN)) ok('cluster', what);
  else bad('cluster', `${what} is too old`, `${KUBERNETES_MIN} or later`);
  if (cluster.missing.length === 0) ok('permissions', 'all that provisioners need are granted');
  else
    bad(
      'permissions',
      `not granted: ${cluster.missing.join(', ')}`,
      'grant them in the namespace of the browsers, as the Role of deploy/helm does',
    );
  const isolated =
    cluster.runtimeClass === null ? '' : ` with runtime class ${cluster.runtimeClass}`;
  if (cluster.noPod !== null)
    bad(
      'pod',
      `no Pod of a browser runs${isolated}: ${cluster.noPod}`,
      'correct what the message names: BROWSER_IMAGE, KUBERNETES_SECCOMP, KUBERNETES_RUNTIME_CLASS',
    );
  else if (cluster.image !== null) ok('pod', `a Pod of the image runs${isolated}`);
  found.push(...checkImage(cluster.image, 'no Pod has shown it'));
  found.push(...checkNetwork(cluster.network));
  if (cluster.quotas === null)
    warn('quota', 'quotas cannot be read', 'grant `list resourcequotas` to the user of the doctor');
  else found.push(...cluster.quotas.flatMap(checkQuota));
  return found;
}

function checkNetwork(network: ClusterFacts['network']): Finding[] {
  const { found, ok, warn, bad } = findingsOf('browsers');
  if (network === null) return found;
  if (network.reachable === '')
    ok('network', 'sessions cannot reach each other, the nodes or the API server (probed)');
  else
    bad(
      'network',
      `NetworkPolicies are not in force: ${network.reachable}`,
      'use a network plugin that enforces them, and the policies of deploy/helm',
    );
  if (network.isClosable) ok('egress', 'sessions can be held to their `egress` (probed)');
  else
    warn(
      'egress',
      'a session without a way out could not be shown',
      'sessions with `egress` are refused: see the policies of deploy/helm',
    );
  return found;
}

function checkQuota({ quota, resource, hard, used }: QuotaFacts): Finding[] {
  const { found, ok, warn } = findingsOf('browsers');
  const most = amountOf(hard);
  const share = most === 0 ? 1 : amountOf(used) / most;
  const what = `${quota}: ${used} of ${hard} ${resource} in use`;
  if (share > MUCH)
    warn('quota', what, 'raise it, or lower POOL_MAX: Kubernetes refuses Pods beyond it');
  else ok('quota', what);
  return found;
}

const UNITS: Readonly<Record<string, number>> = {
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** A quantity of Kubernetes, as `500m` or `2Gi`, as a number. */
function amountOf(quantity: string): number {
  const [, number = '0', unit = ''] = /^([0-9.e+-]+)([A-Za-z]*)$/.exec(quantity) ?? [];
  return Number(number) * (UNITS[unit] ?? 1);
}
