import type { FastifyReply, FastifyRequest } from 'fastify';
import { organizationSessions, sessionsInStatus } from '#projections/organization-sessions.ts';
import { idOf } from '#projections/projection.ts';
import { liveServers } from '#projections/servers.ts';
import { allWorkloads, workloads, workloadsInStatus } from '#projections/workloads.ts';
import { admission } from '../../http/admission.ts';
import { asOfParameter, readAsOf } from '../../time-travel/as-of.ts';
import type { Caller } from '../../auth/authenticate.ts';
import type { ApiParts } from '../../dependencies.ts';
import type { Past } from '../../time-travel/past.ts';
import { refuse } from '../../http/error-response.ts';
import { untilCurrent } from '../../sessions/read-your-writes.ts';
import type { Route } from '../../http/route.ts';
import { poolCounters, ServiceStatus } from '../../schemas/sessions.ts';

/** What the answer is made of, now or then. */
type Load = { word: string; pool: readonly number[]; active: number; at: number };

/** GET /api/status: the pool's browsers by what they do, and the organization's load. */
export function serviceStatus(parts: ApiParts, past: Past): Route {
  const { views, health, desk } = parts;
  const lists = poolCounters.map((name) =>
    name === 'total' ? allWorkloads : workloadsInStatus(name),
  );

  async function now(organizationId: string): Promise<Load> {
    await untilCurrent(parts, organizationSessions);
    const [pool, active] = await Promise.all([
      views.counts(idOf(workloads), lists),
      views.counts(idOf(organizationSessions), [sessionsInStatus(organizationId, 'active')]),
    ]);
    return { word: health.autoscaler(), pool, active: active[0] ?? 0, at: desk.now() };
  }
  async function then(organizationId: string, at: number): Promise<Load> {
    const sessions = [sessionsInStatus(organizationId, 'active')];
    const asked = { workloads: lists, servers: [liveServers], sessions };
    const found = await past.counts(organizationId, asked, at);
    const word = (found.servers[0] ?? 0) > 0 ? 'healthy' : 'unhealthy';
    return { word, pool: found.workloads, active: found.sessions[0] ?? 0, at };
  }

  async function handle(request: FastifyRequest, reply: FastifyReply, caller: Caller) {
    const { organizationId } = caller;
    const asked = readAsOf((request.query as { as_of?: unknown }).as_of, desk.now());
    const [refusal, current] = await Promise.all([
      admission(request, desk.now()),
      asked === null ? now(organizationId) : null,
    ]);
    if (refusal !== null) return refuse(reply, refusal);
    if (asked !== null && typeof asked !== 'number') return refuse(reply, asked);
    const { word, pool, active, at } = current ?? (await then(organizationId, asked ?? 0));
    const poolStatus = Object.fromEntries(
      poolCounters.map((name, index) => [name, pool[index] ?? 0]),
    );
    return reply.send({
      autoscaler: { status: word, pool_status: poolStatus },
      current_load: { active_sessions: active, organization_id: organizationId },
      timestamp: new Date(at).toISOString(),
    });
  }
  return {
    method: 'GET',
    path: '/api/status',
    operationId: 'getStatus',
    summary: 'Capacity and load',
    action: 'read',
    admitsItself: true,
    query: asOfParameter,
    answer: { status: 200, schema: ServiceStatus, description: 'The pool and the load' },
    refusals: [],
    handle,
  };
}
