import type { V1OwnerReference } from '@kubernetes/client-node';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { CheckNotRun, type IsolationCheck } from '../availability.ts';
import type { BrowserBuild } from '../browsers.ts';
import { connectCluster, KubernetesUnavailable, messageOf } from './cluster.ts';
import type { Cluster, ClusterOptions } from './cluster.ts';
import { inspectImage } from './image.ts';
import { checkIsolation, NotIsolated } from './isolation.ts';
import type { PodOptions } from './pod.ts';

export type KubernetesSiteOptions = ClusterOptions &
  Omit<PodOptions, 'owner'> & {
    /** The ConfigMap of the namespace that is to own the browsers; null: nothing is. */
    owner: string | null;
    /** `required`: the start fails if a session would reach what it must not. */
    isolation: 'required' | 'best-effort';
    log: Pick<Logger, 'info' | 'warn'>;
  };

/** A namespace that is ready to run browsers of this server. */
export type KubernetesSite = {
  cluster: Cluster;
  pods: PodOptions;
  build: BrowserBuild;
  /** Whether a Pod can be held to its proxy. */
  canClose: boolean;
  guard: IsolationCheck;
  checkEveryMs: number;
};

/** A check takes three Pods and some seconds. */
const CHECK_EVERY_MS = 10 * 60_000;

/** @throws KubernetesUnavailable */
export async function openSite(options: KubernetesSiteOptions): Promise<KubernetesSite> {
  const { isolation, log } = options;
  const cluster = await connectCluster(options);
  const pods: PodOptions = { ...options, owner: await findOwner(cluster, options.owner) };
  const { namespace } = cluster;
  /** @returns whether Pods can be closed; null: sessions are not isolated */
  async function verify(): Promise<boolean | null> {
    try {
      const { isClosable } = await checkIsolation(cluster, pods);
      log.info({ namespace, isClosable }, 'network isolation verified');
      return isClosable;
    } catch (error) {
      const why = `sessions in the namespace ${namespace} are not isolated: ${messageOf(error)}`;
      if (isolation === 'required')
        throw new KubernetesUnavailable(
          `KUBERNETES_ISOLATION: ${why}. Browsers do not start without isolation; ` +
            'KUBERNETES_ISOLATION=best-effort starts them without it.',
          { cause: error },
        );
      log.warn({ err: error, namespace }, why);
      return null;
    }
  }
  const verifying = verify();
  // An image that does not run fails both, and says more of it.
  verifying.catch(() => undefined);
  const { build, hasRelay } = await inspectImage(cluster, pods);
  const isClosable = await verifying;
  // With best-effort isolation one warning is enough: no check every ten minutes.
  const check = async () => {
    if (isClosable === null) return;
    try {
      await verify();
    } catch (error) {
      const { cause, message } = error as Error;
      if (cause instanceof NotIsolated) throw error;
      throw new CheckNotRun(message, { cause });
    }
  };
  return {
    cluster,
    pods,
    build,
    canClose: isClosable === true && hasRelay,
    guard: { check },
    checkEveryMs: CHECK_EVERY_MS,
  };
}

/**
 * Kubernetes deletes what an object of the same namespace owns with it: an owner elsewhere would
 * count as gone.
 * @throws KubernetesUnavailable
 */
async function findOwner(
  { api, namespace, bounded }: Cluster,
  name: string | null,
): Promise<V1OwnerReference | null> {
  if (name === null) return null;
  try {
    const { metadata } = await api.readNamespacedConfigMap({ name, namespace }, bounded());
    return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: metadata?.uid ?? '' };
  } catch (error) {
    throw new KubernetesUnavailable(
      `KUBERNETES_OWNER: the ConfigMap ${name} of ${namespace} cannot be read ` +
        `(${messageOf(error)}).`,
      { cause: error },
    );
  }
}
