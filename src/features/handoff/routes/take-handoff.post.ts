import { isId } from '#events/subjects.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';
import { requestMetadata, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { response, type ApiServer } from '#src/roles/api/http/route.ts';
import { HandoffPath, presentHandoff, TakenHandoff } from '#src/roles/api/schemas/steering.ts';

/** POST /api/sessions/{id}/handoffs/{handoff_id}/take: from now on the caller steers alone. */
export function takeHandoff(
  server: ApiServer,
  { context, views, addresses }: Pick<ApiDependencies, 'context' | 'views' | 'addresses'>,
): void {
  server.route({
    method: 'POST',
    url: '/api/sessions/:id/handoffs/:handoff_id/take',
    schema: {
      operationId: 'takeHandoff',
      tags: ['Hand-offs'],
      summary: 'Take a hand-off',
      description:
        'Answers addresses of the screen that alone steer it until the hand-off is over; then ' +
        'they are refused, and their connections closed. Within two seconds every gateway keeps ' +
        'the session’s CDP commands back. The user who took it gets the same again.',
      params: HandoffPath,
      response: { 200: response('The caller has it', TakenHandoff) },
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
      const { organizationId, userId, keyHash } = caller;
      const { id, handoff_id: handoffId } = request.params;
      if (!isId(id)) return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const handled = await handleSessionCommand(
        context,
        { organizationId, id },
        { type: 'TakeHandoff', handoffId, by: userId, now: context.now() },
        requestMetadata(request, caller),
      );
      if (isRejection(handled)) return sendRejection(reply, handled);
      const { state } = handled;
      const { handoff, workload } = state;
      if (handoff === undefined || workload === null)
        throw new Error(`session ${id} has a hand-off that is taken, but no browser`);
      await untilReadable(views, handled.sequence);
      const grant = { kind: 'handoff', id: handoff.id } as const;
      const password = addresses.vncPassword(workload.workloadId);
      return reply.send({
        ...presentHandoff(state, handoff),
        viewer_url: addresses.viewerUrl(state, keyHash, password, grant),
        vnc_url: addresses.vncUrl(state, keyHash, grant),
        vnc_password: password,
      });
    },
  });
}
