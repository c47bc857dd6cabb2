import { Type } from 'typebox';
import { reject } from '#src/kernel/errors.ts';
import { loadSession, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { response, type ApiServer } from '#src/roles/api/http/route.ts';
import { Words } from '#src/roles/api/schemas/fields.ts';
import { SessionPath } from '#src/roles/api/schemas/requests.ts';
import {
  Handoff,
  HandoffList,
  HandoffPath,
  presentHandoff,
} from '#src/roles/api/schemas/steering.ts';
import { handoffsOf, HANDOFFS_MAX, openHandoffs } from '../handoffs.ts';

type Dependencies = Pick<ApiDependencies, 'context' | 'views' | 'sessionEvents'>;

/**
 * GET /api/handoffs: what waits for a person of the organization; GET /api/sessions/{id}/handoffs
 * and …/{handoff_id}: those of a session.
 */
export function readHandoffs(server: ApiServer, dependencies: Dependencies): void {
  listOpenHandoffs(server, dependencies);
  listHandoffs(server, dependencies);
  getHandoff(server, dependencies);
}

function listOpenHandoffs(server: ApiServer, dependencies: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/handoffs',
    schema: {
      operationId: 'listOpenHandoffs',
      tags: ['Hand-offs'],
      summary: 'What waits for a person',
      description:
        'The open hand-offs of the organization, oldest first. Current, or 503 UNAVAILABLE.',
      querystring: Type.Object(
        {
          status: Type.Optional(
            Words(['requested', 'taken'], { description: 'only those; default: both' }),
          ),
        },
        { additionalProperties: false },
      ),
      response: { 200: response('The open hand-offs', HandoffList) },
    },
    config: { action: 'read', refusals: [], cost: costs.listHandoffs },
    async handler(request, reply) {
      const { status } = request.query;
      const open = await openHandoffs(dependencies, request.caller.organizationId);
      const handoffs = open
        .filter(({ handoff }) => status === undefined || handoff.status === status)
        .map(({ session, handoff }) => presentHandoff(session, handoff));
      return reply.send({ handoffs });
    },
  });
}

function listHandoffs(server: ApiServer, { context }: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/handoffs',
    schema: {
      operationId: 'listHandoffs',
      tags: ['Hand-offs'],
      summary: 'The hand-offs of a session',
      description: `Newest first, at most ${HANDOFFS_MAX}.`,
      params: SessionPath,
      response: { 200: response('Open ones and past ones', HandoffList) },
    },
    config: { action: 'read', refusals: ['SESSION_NOT_FOUND'], cost: costs.listHandoffs },
    async handler(request, reply) {
      const { id } = request.params;
      const { organizationId } = request.caller;
      const session = await loadSession(context, organizationId, id);
      if (session === null)
        return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      if (session.state.handoff === undefined) return reply.send({ handoffs: [] });
      const all = await handoffsOf(context.eventStore, { kind: 'session', organizationId, id });
      return reply.send({ handoffs: all.map((one) => presentHandoff(session.state, one)) });
    },
  });
}

function getHandoff(server: ApiServer, { context }: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/handoffs/:handoff_id',
    schema: {
      operationId: 'getHandoff',
      tags: ['Hand-offs'],
      summary: 'Read a hand-off',
      params: HandoffPath,
      response: { 200: response('The hand-off', Handoff) },
    },
    config: { action: 'read', refusals: ['SESSION_NOT_FOUND', 'HANDOFF_NOT_FOUND'] },
    async handler(request, reply) {
      const { id, handoff_id: handoffId } = request.params;
      const { organizationId } = request.caller;
      const session = await loadSession(context, organizationId, id);
      if (session === null)
        return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const { state } = session;
      const last = state.handoff;
      // Only the last one is in the state; older ones are rarely asked for.
      const found =
        last === undefined || last.id === handoffId
          ? last
          : (await handoffsOf(context.eventStore, { kind: 'session', organizationId, id })).find(
              (one) => one.id === handoffId,
            );
      if (found === undefined)
        return sendRejection(
          reply,
          reject('HANDOFF_NOT_FOUND', { session_id: id, handoff_id: handoffId }),
        );
      return reply.send(presentHandoff(state, found));
    },
  });
}
