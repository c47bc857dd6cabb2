import { reject } from '#src/kernel/errors.ts';
import { readPage } from '#src/kernel/history/page.ts';
import { loadSession, type ApiDependencies } from '../../dependencies.ts';
import { goneSignal } from '../../http/client-gone.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { HistoryQuery, PAGE_DEFAULT, SessionHistory } from '../../schemas/history.ts';
import { SessionPath } from '../../schemas/requests.ts';
import { historyText } from '../../sessions/public-history.ts';

/** GET /api/sessions/{id}/history: a page of a session's events, each with the state after it. */
export function sessionHistory(
  server: ApiServer,
  { context }: Pick<ApiDependencies, 'context'>,
): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/history',
    schema: {
      operationId: 'getSessionHistory',
      tags: ['Sessions'],
      summary: "A session's events, with what each changed and the state after it",
      description:
        'Also of a session that is archived. The events of a live session go on: `after` of the ' +
        'next request is then the `sequence` of the last event.',
      params: SessionPath,
      querystring: HistoryQuery,
      response: { 200: response('A page of its events', SessionHistory) },
    },
    config: { action: 'read', refusals: ['SESSION_NOT_FOUND'], cost: costs.getSessionHistory },
    async handler(request, reply) {
      const { id } = request.params;
      const { limit = PAGE_DEFAULT, after = 0 } = request.query;
      const { organizationId } = request.caller;
      const current = await loadSession(context, organizationId, id);
      if (current === null)
        return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const session = { kind: 'session', organizationId, id } as const;
      const range = { after, upTo: current.sequence, limit, signal: goneSignal(reply) };
      const page = await readPage(context.eventStore, session, range);
      return reply.type('application/json; charset=utf-8').send(historyText(page));
    },
  });
}
