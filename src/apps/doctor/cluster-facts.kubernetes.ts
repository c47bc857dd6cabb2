import { randomBytes } from 'node:crypto';
import { createLinkKeys } from '#src/browsers/link/browser-link.ts';
import type { KubernetesConfig } from '#src/kernel/config/kubernetes.ts';
import { connectCluster, messageOf, statusOf } from '#src/browsers/kubernetes/cluster.ts';
import type { Cluster } from '#src/browsers/kubernetes/cluster.ts';
import { inspectImage } from '#src/browsers/kubernetes/image.ts';
import { checkIsolation } from '#src/browsers/kubernetes/isolation.ts';
import { missingPermissions } from '#src/browsers/kubernetes/permissions.ts';
import type { PodOptions } from '#src/browsers/kubernetes/pod.ts';
import type { ClusterFacts, QuotaFacts } from './facts.ts';

/**
 * Reads the state of the namespace, and probes image and network in Pods that are confined like a
 * browser; they are removed. @throws KubernetesUnavailable
 */
export async function gatherClusterFacts(config: KubernetesConfig): Promise<ClusterFacts> {
  const cluster = await connectCluster(config);
  const options: PodOptions = {
    ...config,
    serverId: 'doctor',
    owner: null,
    // Launches no browser.
    linkKeys: createLinkKeys(randomBytes(32)),
  };
  const { VersionApi } = await import('@kubernetes/client-node');
  const versions = cluster.config.makeApiClient(VersionApi);
  const missing = await missingPermissions(cluster, config.owner);
  const common = {
    version: (await versions.getCode({}, cluster.bounded())).gitVersion,
    namespace: cluster.namespace,
    runtimeClass: config.runtimeClass,
    missing,
    quotas: await readQuotas(cluster),
  };
  if (missing.length > 0) return { ...common, image: null, noPod: null, network: null };
  try {
    const { build } = await inspectImage(cluster, options);
    const ageMs = build.builtAt === null ? null : Math.max(0, Date.now() - build.builtAt);
    const image = { version: build.version, ageMs: ageMs ?? 0, isGiven: true };
    return { ...common, image, noPod: null, network: await tryNetwork(cluster, options) };
  } catch (error) {
    return { ...common, image: null, noPod: messageOf(error), network: null };
  }
}

async function tryNetwork(
  cluster: Cluster,
  options: PodOptions,
): Promise<NonNullable<ClusterFacts['network']>> {
  try {
    const { isClosable } = await checkIsolation(cluster, options);
    return { reachable: '', isClosable };
  } catch (error) {
    return { reachable: messageOf(error), isClosable: false };
  }
}

/** What the namespace's quotas allow; null: this user may not read them. */
async function readQuotas({
  api,
  namespace,
  bounded,
}: Cluster): Promise<readonly QuotaFacts[] | null> {
  try {
    const { items } = await api.listNamespacedResourceQuota({ namespace }, bounded());
    return items.flatMap(({ metadata, status }) =>
      Object.entries(status?.hard ?? {}).map(([resource, hard]) => ({
        quota: metadata?.name ?? '',
        resource,
        hard,
        used: status?.used?.[resource] ?? '0',
      })),
    );
  } catch (error) {
    if (statusOf(error) === 403) return null;
    throw error;
  }
}
