import { isId } from '#events/subjects.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';
import { requestMetadata, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { response, type ApiServer } from '#src/roles/api/http/route.ts';
import {
  CompleteHandoffBody,
  Handoff,
  HandoffPath,
  presentHandoff,
} from '#src/roles/api/schemas/steering.ts';

/** POST /api/sessions/{id}/handoffs/{handoff_id}/complete: automation goes on. */
export function completeHandoff(
  server: ApiServer,
  { context, views }: Pick<ApiDependencies, 'context' | 'views'>,
): void {
  server.route({
    method: 'POST',
    url: '/api/sessions/:id/handoffs/:handoff_id/complete',
    schema: {
      operationId: 'completeHandoff',
      tags: ['Hand-offs'],
      summary: 'Give the browser back',
      description:
        'Ends a hand-off: the addresses of the person are refused, and automation goes on with ' +
        'the commands that waited. Only the user who took it gives it back; until it is taken ' +
        'every member may close it. A repeat changes nothing.',
      params: HandoffPath,
      body: CompleteHandoffBody,
      response: { 200: response('It is over', Handoff) },
    },
    config: {
      action: 'control',
      refusals: [
        'SESSION_NOT_FOUND',
        'HANDOFF_NOT_FOUND',
        'HANDOFF_CONFLICT',
        'SESSION_NOT_READY',
        'SESSION_ENDED',
      ],
    },
    async handler(request, reply) {
      const { caller } = request;
      const { organizationId, userId } = caller;
      const { id, handoff_id: handoffId } = request.params;
      const { success, note = '' } = request.body;
      if (!isId(id)) return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const said = { handoffId, by: userId, success, note, now: context.now() };
      const handled = await handleSessionCommand(
        context,
        { organizationId, id },
        { type: 'CompleteHandoff', ...said },
        requestMetadata(request, caller),
      );
      if (isRejection(handled)) return sendRejection(reply, handled);
      const { state } = handled;
      if (state.handoff === undefined) throw new Error(`hand-off ${handoffId} is in no state`);
      await untilReadable(views, handled.sequence);
      return reply.send(presentHandoff(state, state.handoff));
    },
  });
}
