import type { Leaks, ServerState } from '#events/server.ts';
import { projectionId } from '../projection.ts';
import { currentServers, servers } from '../servers.ts';
import { pageMax } from './limits.ts';
import type { Views } from './views.ts';

/**
 * All views of a list, parsed, newest first, at most `max`. Read page by page: a view that enters
 * or leaves the list meanwhile may be missing or come twice, so a command must decide on the event
 * store's state, not on this result.
 */
export async function readList<View>(
  views: Views,
  projection: string,
  list: string,
  max = 100_000,
): Promise<View[]> {
  const found: View[] = [];
  for (let total = 1; found.length < Math.min(total, max);) {
    const query = { lists: [list], offset: found.length, limit: pageMax };
    const page = await views.page(projection, query);
    const items = JSON.parse(`[${page.items}]`) as View[];
    if (items.length === 0) break;
    found.push(...items);
    total = page.total;
  }
  return found;
}

/**
 * The leaks that all current servers found at their last reconciliation, summed; both should be 0.
 * A lost server does not count: its sessions have failed and its browsers count as terminated.
 */
export async function readLeaks(views: Views): Promise<Leaks> {
  const current = await readList<ServerState>(views, projectionId(servers), currentServers);
  const sum = (count: (leaks: Leaks) => number) =>
    current.reduce((all, { leaks }) => all + (leaks === undefined ? 0 : count(leaks)), 0);
  return {
    browsers: sum(({ browsers }) => browsers),
    sessions: sum(({ sessions }) => sessions),
  };
}
