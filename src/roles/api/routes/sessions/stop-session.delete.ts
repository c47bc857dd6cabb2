import type { SessionState } from '#events/session.ts';
import { isId } from '#events/subjects.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { requestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { SessionPath } from '../../schemas/requests.ts';
import { SessionStopped } from '../../schemas/sessions.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';

/**
 * DELETE /api/sessions/{id}: answered once the stop is durable and every reader sees it; the
 * browser ends after that. Idempotent: for a session that is ending or has ended the answer is the
 * same, and no event is appended.
 */
export function stopSession(
  server: ApiServer,
  { context, views }: Pick<ApiDependencies, 'context' | 'views'>,
): void {
  server.route({
    method: 'DELETE',
    url: '/api/sessions/:id',
    schema: {
      operationId: 'stopSession',
      tags: ['Sessions'],
      summary: 'Stop a session',
      description:
        'Answers once the stop is durable. The browser is terminated after that, and unused ' +
        'credits are given back. Stopping a session that is stopping or has ended changes ' +
        'nothing and is not an error; the message tells if the session had failed.',
      params: SessionPath,
      response: { 200: response('It is stopped, or had ended', SessionStopped) },
    },
    config: { action: 'control', refusals: ['SESSION_NOT_FOUND'] },
    async handler(request, reply) {
      const { id } = request.params;
      if (!isId(id)) return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const command = { type: 'StopSession', reason: 'user', now: context.now() } as const;
      const session = { organizationId: request.caller.organizationId, id };
      const metadata = requestMetadata(request, request.caller);
      const handled = await handleSessionCommand(context, session, command, metadata);
      if (isRejection(handled)) return sendRejection(reply, handled);
      await untilReadable(views, handled.sequence);
      return reply.send({ message: messageOf(handled.state), session_id: id });
    },
  });
}

function messageOf({ name, status }: SessionState): string {
  if (status === 'failed') return `Session ${name} had already failed.`;
  if (status === 'stopped') return `Session ${name} has been stopped.`;
  return `Session ${name} has been stopped; its browser is being removed.`;
}
