import { projectionId } from '#projections/projection.ts';
import { currentServers, servers } from '#projections/servers.ts';
import { readList } from '#projections/store/queries.ts';
import { allWorkloads, workloads, workloadsInStatus } from '#projections/workloads.ts';
import type { ServerState } from '#events/server.ts';
import { keptBriefly } from '#src/kernel/async/kept-briefly.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { HistoryReader } from '../time-travel/history-reader.ts';
import { whyWaiting, type PoolFacts } from './why-waiting.ts';

/** How long the queue is shown without being read again. */
const KEPT_MS = 1_000;
const SERVERS_MAX = 1_000;

/** The sessions that wait for a server, with their places and why; of one organization or all. */
export function createWaitingPlaces(
  dependencies: Pick<ApiDependencies, 'views' | 'pace'>,
  past: Pick<HistoryReader, 'waiting'>,
) {
  const kept = keptBriefly<Awaited<ReturnType<typeof read>>>(KEPT_MS);
  async function read() {
    return { line: await past.waiting(), facts: await readFacts(dependencies.views) };
  }
  return async (organizationId: string | null) => {
    const { line, facts } = await kept('', read);
    return line.flatMap((waiting, before) => {
      if (organizationId !== null && waiting.organizationId !== organizationId) return [];
      return {
        session_id: waiting.id,
        organization_id: waiting.organizationId,
        since: new Date(waiting.since).toISOString(),
        position: before + 1,
        estimated_wait_seconds: dependencies.pace.secondsFor(before + 1),
        why: whyWaiting(waiting, before, facts),
      };
    });
  };
}

async function readFacts(views: ApiDependencies['views']): Promise<PoolFacts> {
  const [current, counts] = await Promise.all([
    readList<ServerState>(views, projectionId(servers), currentServers, SERVERS_MAX),
    views.counts(projectionId(workloads), [allWorkloads, workloadsInStatus('idle')]),
  ]);
  return {
    servers: current.map(({ status, poolMax, pool }) => ({
      status: status as 'live',
      poolMax,
      limitedBy: pool?.limitedBy ?? null,
    })),
    browsers: counts[0] ?? 0,
    idle: counts[1] ?? 0,
  };
}
