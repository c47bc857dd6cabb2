import type { ServerState } from '#events/server.ts';
import { organizationSessions, waitingSessions } from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import { currentServers, servers } from '#projections/servers.ts';
import type { Views } from '#projections/store/views.ts';
import { workloads, workloadsInStatus, workloadsOnServer } from '#projections/workloads.ts';
import { reject, Unavailable, type Rejection } from '#src/errors.ts';

/** Servers that are read; a rejection names them. */
const SERVERS_MAX = 1_000;
/** Seconds until a browser may be free: sessions come and go within seconds on a busy service. */
const RETRY_AFTER_SECONDS = 5;

/**
 * The reason to refuse a further session, or null. There are two: no server is live, or the queue
 * beyond the servers' room is full. Three reads in one round trip. While the read model is
 * unavailable nothing is refused here: a request that no server accepts ends by its queue time-out.
 */
export async function capacityRefusal(views: Views, queueMax: number): Promise<Rejection | null> {
  try {
    return await refusalNow(views, queueMax);
  } catch (error) {
    if (error instanceof Unavailable) return null;
    throw error;
  }
}

async function refusalNow(views: Views, queueMax: number): Promise<Rejection | null> {
  const query = { lists: [currentServers], offset: 0, limit: SERVERS_MAX };
  const [page, taken, waiting] = await Promise.all([
    views.page(projectionId(servers), query),
    views.counts(projectionId(workloads), [workloadsInStatus('busy')]),
    views.counts(projectionId(organizationSessions), [waitingSessions]),
  ]);
  const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS };
  const current = JSON.parse(`[${page.items}]`) as ServerState[];
  const refusals = current.map((server) => ({
    server_id: server.id,
    pool_max: server.poolMax,
    reason: reasonOf(server),
  }));
  if (!current.some(({ status }) => status === 'live'))
    return reject('NO_SERVERS_AVAILABLE', { servers: refusals }, retry);
  const queued = waiting[0] ?? 0;
  const room = await roomOf(views, current, taken[0] ?? 0);
  if (queued < Math.max(0, room) + queueMax) return null;
  return reject(
    'NO_SERVERS_AVAILABLE',
    { servers: refusals, waiting: queued, queue_max: queueMax },
    { ...retry, message: 'All browser servers are full, and so is the queue.' },
  );
}

/**
 * Browsers that may still be assigned. Servers that accept no sessions now are left out: neither
 * their browsers nor their room count.
 */
async function roomOf(views: Views, current: ServerState[], busy: number): Promise<number> {
  const [open, closed] = [
    current.filter((server) => reasonOf(server) === 'full'),
    current.filter((server) => reasonOf(server) !== 'full'),
  ];
  const pages = closed.map(({ id }) =>
    views.page(projectionId(workloads), {
      lists: [workloadsOnServer(id), workloadsInStatus('busy')],
      offset: 0,
      limit: 1,
    }),
  );
  const busyElsewhere = (await Promise.all(pages)).reduce((sum, { total }) => sum + total, 0);
  return open.reduce((sum, { poolMax }) => sum + poolMax, 0) - (busy - busyElsewhere);
}

/** Why a server accepts no sessions. */
function reasonOf({ status, pool }: ServerState): 'draining' | 'short of memory' | 'full' {
  if (status !== 'live') return 'draining';
  return pool?.limitedBy === 'memory' ? 'short of memory' : 'full';
}
