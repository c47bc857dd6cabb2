import { retry } from '#src/kernel/async/retry.ts';
import { tailOf } from '../output.ts';
import { statusOf, type Cluster } from './cluster.ts';
import { BROWSER } from './naming.ts';

const LOG_LINES = 60;
const LOG_BYTES = 16 * 1024;
/** A node answers a deletion within its grace of 2 s and some; then it counts as gone. */
const DELETED_WITHIN_MS = 20_000;
const FORCED_WITHIN_MS = 10_000;
const POLL_MS = 200;

/**
 * Deletes a Pod and its Secret; resolves when none of its processes is left. Idempotent. Where its
 * node does not answer, the Pod is removed without it: no process can be seen there.
 * @throws Error where the API server fails
 */
export async function removePod(cluster: Cluster, name: string): Promise<void> {
  await removeSecret(cluster, name);
  if (!(await deletePod(cluster, name))) return;
  if (await isGoneWithin(cluster, name, DELETED_WITHIN_MS)) return;
  // Without a grace the API server forgets the Pod at once, whatever its node does.
  await deletePod(cluster, name, 0);
  if (await isGoneWithin(cluster, name, FORCED_WITHIN_MS)) return;
  throw new Error(`the Pod ${name} is not gone ${DELETED_WITHIN_MS} ms after its deletion`);
}

/** @returns false: there is no such Pod */
async function deletePod(cluster: Cluster, name: string, grace?: number): Promise<boolean> {
  const { api, namespace, bounded } = cluster;
  const forced = grace === undefined ? {} : { gracePeriodSeconds: grace };
  try {
    await api.deleteNamespacedPod({ name, namespace, ...forced }, bounded());
    return true;
  } catch (error) {
    if (statusOf(error) === 404) return false;
    throw error;
  }
}

/** The Pod stays until its node has ended all of it. */
async function isGoneWithin(cluster: Cluster, name: string, withinMs: number): Promise<boolean> {
  const { api, namespace, bounded } = cluster;
  const present = new Error('the Pod is there');
  const options = {
    withinMs,
    pauseMs: () => POLL_MS,
    isTransient: (error: unknown) => error === present,
  };
  try {
    await retry(options, async () => {
      await api.readNamespacedPod({ name, namespace }, bounded());
      throw present;
    });
  } catch (error) {
    if (statusOf(error) === 404) return true;
    if (error !== present) throw error;
  }
  return false;
}

/** Deletes the Secret of a Pod. Idempotent. */
export async function removeSecret(cluster: Cluster, name: string): Promise<void> {
  const { api, namespace, bounded } = cluster;
  try {
    await api.deleteNamespacedSecret({ name, namespace }, bounded());
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
  }
}

/** The last lines of a browser's output, at most 2 KiB; empty where there is none (any more). */
export async function lastOutput(cluster: Cluster, name: string): Promise<string> {
  const { api, namespace, bounded } = cluster;
  try {
    const container = { container: BROWSER, tailLines: LOG_LINES, limitBytes: LOG_BYTES };
    return tailOf([await api.readNamespacedPodLog({ name, namespace, ...container }, bounded())]);
  } catch (error) {
    if (statusOf(error) === null) throw error;
    return '';
  }
}
