import type { ServerState } from '#events/server.ts';
import {
  openSessions,
  organizationSessions,
  waitingSessions,
} from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import { currentServers, servers } from '#projections/servers.ts';
import type { Views } from '#projections/store/views.ts';
import { workloads, workloadsInStatus, workloadsOnServer } from '#projections/workloads.ts';
import { reject, Unavailable, type Rejection } from '#src/kernel/errors.ts';

/** Servers that are read; a rejection names them. */
const SERVERS_MAX = 1_000;
/** Seconds until a browser may be free: sessions come and go within seconds on a busy service. */
const RETRY_AFTER_SECONDS = 5;

/** Requests that may wait beyond the servers' room. */
export type QueueBounds = {
  max: number;
  /** Those of one organization. */
  perOrganizationMax: number;
};

/**
 * The reason to refuse a further session, or null. There are three: no server is live, the queue
 * beyond the servers' room is full, or the organization's share of it is. Three reads in one round
 * trip; the organization's requests are counted only where they can be that many. While the read
 * model is unavailable nothing is refused here: a request that no server accepts ends by its queue
 * time-out. A session with egress rules is refused in one more case: a live server cannot hold its
 * browsers to them, and any server may take the request.
 * @throws Unavailable for a session with egress rules
 */
export async function capacityRefusal(
  views: Views,
  queue: QueueBounds,
  organizationId: string,
  hasEgress = false,
): Promise<Rejection | null> {
  try {
    return await refusalNow(views, queue, organizationId, hasEgress);
  } catch (error) {
    if (error instanceof Unavailable && !hasEgress) return null;
    throw error;
  }
}

async function refusalNow(
  views: Views,
  bounds: QueueBounds,
  organizationId: string,
  hasEgress: boolean,
): Promise<Rejection | null> {
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
  const open = current.filter(({ status, egress }) => status === 'live' && egress === undefined);
  if (hasEgress && open.length > 0)
    return reject('EGRESS_UNAVAILABLE', { servers: open.map(({ id }) => id) }, retry);
  const queued = waiting[0] ?? 0;
  const room = Math.max(0, await roomOf(views, current, taken[0] ?? 0));
  const context = { servers: refusals, waiting: queued, queue_max: bounds.max };
  if (queued >= room + bounds.max)
    return reject('NO_SERVERS_AVAILABLE', context, {
      ...retry,
      message: 'All browser servers are full, and so is the queue.',
    });
  const share = room + bounds.perOrganizationMax;
  const own = queued < share ? 0 : await waitingOf(views, organizationId);
  if (own < share) return null;
  const ownContext = {
    organization_waiting: own,
    queue_max_per_organization: bounds.perOrganizationMax,
  };
  return reject(
    'NO_SERVERS_AVAILABLE',
    { ...context, ...ownContext },
    {
      ...retry,
      message: "All browser servers are full, and so is the organization's share of the queue.",
    },
  );
}

async function waitingOf(views: Views, organizationId: string): Promise<number> {
  const lists = [waitingSessions, openSessions(organizationId)];
  const query = { lists, offset: 0, limit: 1 };
  return (await views.page(projectionId(organizationSessions), query)).total;
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
