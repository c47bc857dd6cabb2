import { isId } from '#events/subjects.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';
import { isAwaitingServer } from '#src/kernel/domain/session/session.ts';
import { requestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { presentSession } from '../../schemas/present-session.ts';
import { SessionPath, UpdateSessionBody } from '../../schemas/requests.ts';
import { Session } from '../../schemas/sessions.ts';
import { queuePlace } from '../../sessions/queue-place.ts';

/** PATCH /api/sessions/{id}: changes the name, description or labels of an open session. */
export function updateSession(server: ApiServer, dependencies: ApiDependencies): void {
  const { context, views } = dependencies;
  server.route({
    method: 'PATCH',
    url: '/api/sessions/:id',
    schema: {
      operationId: 'updateSession',
      tags: ['Sessions'],
      summary: 'Change name, description or labels',
      description:
        'What is left out stays as it is; `labels` replaces all labels. The session must not be ' +
        'stopping and must not have ended.',
      params: SessionPath,
      body: UpdateSessionBody,
      response: { 200: response('The session', Session) },
    },
    config: {
      action: 'control',
      refusals: ['SESSION_NOT_FOUND', 'SESSION_ENDED'],
      cost: costs.updateSession,
    },
    async handler(request, reply) {
      const { id } = request.params;
      const { caller } = request;
      if (!isId(id)) return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const { session_name: name, description, labels } = request.body;
      const command = {
        type: 'UpdateSession',
        ...(name === undefined ? {} : { name }),
        ...(description === undefined ? {} : { description }),
        ...(labels === undefined ? {} : { labels }),
      } as const;
      const session = { organizationId: caller.organizationId, id };
      const metadata = requestMetadata(request, caller);
      const handled = await handleSessionCommand(context, session, command, metadata);
      if (isRejection(handled)) return sendRejection(reply, handled);
      const { state, sequence } = handled;
      await untilReadable(views, sequence);
      const place = isAwaitingServer(state) ? await queuePlace(dependencies, state) : null;
      return reply.send({ ...presentSession(state, caller, dependencies.addresses), ...place });
    },
  });
}
