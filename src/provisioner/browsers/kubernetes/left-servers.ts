import type { Logger } from '#src/telemetry/logger.ts';
import type { Cluster } from './cluster.ts';
import { selectorFor } from './naming.ts';
import { listPods } from './pods.ts';
import { removePod } from './remove.ts';

/**
 * Removes the browsers of other servers in this namespace that are gone for good: no other process
 * finds them. A Pod that cannot be removed is logged and left.
 * @param isGone whether a server has left or was lost, and does not run
 */
export async function removeBrowsersOfGoneServers(
  cluster: Cluster,
  {
    own,
    isGone,
    log,
  }: {
    own: string;
    isGone: (serverId: string) => Promise<boolean>;
    log: Pick<Logger, 'warn'>;
  },
): Promise<void> {
  const gone = new Map<string, boolean>();
  for (const { name, serverId } of await listPods(cluster, selectorFor(null))) {
    if (serverId === own) continue;
    if (!gone.has(serverId)) gone.set(serverId, await isGone(serverId));
    if (gone.get(serverId) !== true) continue;
    try {
      await removePod(cluster, name);
      log.warn({ serverId, pod: name }, 'removed a browser of a server that is gone');
    } catch (error) {
      log.warn({ err: error, serverId, pod: name }, 'failed to remove a browser');
    }
  }
}
