import type { Leaks, ServerState } from '#events/server.ts';
import { idOf } from './projection.ts';
import { readList } from './store/queries.ts';
import { currentServers, servers } from './servers.ts';
import type { Views } from './store/views.ts';

/**
 * What all servers that are there found amiss at their last comparison; both numbers are to be 0.
 * A server that is lost counts no more: its sessions have failed, its browsers are written off.
 */
export async function readLeaks(views: Views): Promise<Leaks> {
  const current = await readList<ServerState>(views, idOf(servers), currentServers);
  const sum = (count: (leaks: Leaks) => number) =>
    current.reduce((all, { leaks }) => all + (leaks === undefined ? 0 : count(leaks)), 0);
  return {
    browsers: sum(({ browsers }) => browsers),
    sessions: sum(({ sessions }) => sessions),
  };
}
