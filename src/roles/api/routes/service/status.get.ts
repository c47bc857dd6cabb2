import { organizationSessions, sessionsInStatus } from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import { liveServers } from '#projections/servers.ts';
import { allWorkloads, workloads, workloadsInStatus } from '#projections/workloads.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { poolCounters, ServiceStatus } from '../../schemas/sessions.ts';
import { untilCurrent } from '../../sessions/read-model-freshness.ts';
import { AsOfQuery, readAsOf } from '../../time-travel/as-of.ts';
import type { HistoryReader } from '../../time-travel/history-reader.ts';

/** The data of the answer, of now or of a past moment. */
type Load = { word: string; pool: readonly number[]; active: number; at: number };

/** GET /api/status: the pool's browsers by state, and the organization's load. */
export function serviceStatus(
  server: ApiServer,
  dependencies: ApiDependencies,
  past: HistoryReader,
): void {
  const { views, health, context } = dependencies;
  const lists = poolCounters.map((name) =>
    name === 'total' ? allWorkloads : workloadsInStatus(name),
  );

  async function now(organizationId: string): Promise<Load> {
    await untilCurrent(dependencies, organizationSessions);
    const [pool, active] = await Promise.all([
      views.counts(projectionId(workloads), lists),
      views.counts(projectionId(organizationSessions), [
        sessionsInStatus(organizationId, 'active'),
      ]),
    ]);
    return { word: health.autoscaler(), pool, active: active[0] ?? 0, at: context.now() };
  }
  async function then(organizationId: string, at: number): Promise<Load> {
    const sessions = [sessionsInStatus(organizationId, 'active')];
    const asked = { workloads: lists, servers: [liveServers], sessions };
    const found = await past.counts(organizationId, asked, at);
    const word = (found.servers[0] ?? 0) > 0 ? 'healthy' : 'unhealthy';
    return { word, pool: found.workloads, active: found.sessions[0] ?? 0, at };
  }

  server.route({
    method: 'GET',
    url: '/api/status',
    schema: {
      operationId: 'getStatus',
      tags: ['Service'],
      summary: 'Capacity and load',
      querystring: AsOfQuery,
      response: { 200: response('The pool and the load', ServiceStatus) },
    },
    config: { action: 'read', refusals: [], admission: 'handler', cost: costs.getStatus },
    async handler(request, reply) {
      const { organizationId } = request.caller;
      const asked = readAsOf(request.query.as_of, context.now());
      const [rejection, current] = await Promise.all([
        request.admitted,
        asked === null ? now(organizationId) : null,
      ]);
      if (rejection !== null) return sendRejection(reply, rejection);
      if (asked !== null && typeof asked !== 'number') return sendRejection(reply, asked);
      const { word, pool, active, at } = current ?? (await then(organizationId, asked ?? 0));
      const poolStatus = Object.fromEntries(
        poolCounters.map((name, index) => [name, pool[index] ?? 0]),
      );
      return reply.send({
        autoscaler: { status: word, pool_status: poolStatus },
        current_load: { active_sessions: active, organization_id: organizationId },
        timestamp: new Date(at).toISOString(),
      });
    },
  });
}
