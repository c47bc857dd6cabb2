import type { Logger } from '#src/kernel/telemetry/logger.ts';

/** A browser of some server; `place` is its name for operators. */
export type ServersBrowser = {
  serverId: string;
  place: { container: string } | { pod: string };
  remove: () => Promise<void>;
};

export type GoneServers = {
  /** This server. */
  own: string;
  /** Whether a server has left or was lost, and does not run. */
  isGone: (serverId: string) => Promise<boolean>;
  log: Pick<Logger, 'warn'>;
};

/**
 * Removes the browsers of other servers that are gone for good, as one whose data folder was lost:
 * no other process finds them. One that cannot be removed is logged and left. Never rejects.
 * @param list the browsers of all servers
 */
export async function removeBrowsersOfGoneServers(
  list: () => Promise<ServersBrowser[]>,
  { own, isGone, log }: GoneServers,
): Promise<void> {
  const gone = new Map<string, boolean>();
  try {
    for (const { serverId, place, remove } of await list()) {
      if (serverId === own) continue;
      if (!gone.has(serverId)) gone.set(serverId, await isGone(serverId));
      if (gone.get(serverId) !== true) continue;
      try {
        await remove();
        log.warn({ serverId, ...place }, 'removed a browser of a server that is gone');
      } catch (error) {
        log.warn({ err: error, serverId, ...place }, 'failed to remove a browser');
      }
    }
  } catch (error) {
    log.warn({ err: error }, 'failed to look for browsers of servers that are gone');
  }
}
