import type Docker from 'dockerode';
import type { Logger } from '#src/telemetry/logger.ts';
import { removeContainer } from './container.ts';
import { bounded } from './engine.ts';
import { labelled, serverIdOf } from './naming.ts';

/**
 * Removes the browsers of other servers on this engine that are gone for good, as one whose data
 * folder was lost: no other process finds them. A container that cannot be removed is logged and
 * left.
 * @param isGone whether a server has left or was lost, and does not run
 */
export async function removeBrowsersOfGoneServers(
  docker: Docker,
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
  const filters = JSON.stringify(labelled());
  const infos = await docker.listContainers({ all: true, filters, ...bounded() });
  const gone = new Map<string, boolean>();
  for (const { Id, Labels } of infos) {
    const serverId = serverIdOf(Labels);
    if (serverId === null || serverId === own) continue;
    if (!gone.has(serverId)) gone.set(serverId, await isGone(serverId));
    if (gone.get(serverId) !== true) continue;
    try {
      await removeContainer(docker.getContainer(Id));
      log.warn({ serverId, container: Id }, 'removed a browser of a server that is gone');
    } catch (error) {
      log.warn({ err: error, serverId, container: Id }, 'failed to remove a browser');
    }
  }
}
