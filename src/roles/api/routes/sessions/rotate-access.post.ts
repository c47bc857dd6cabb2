import { isId } from '#events/subjects.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';
import { requestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { presentAccess } from '../../schemas/present-session.ts';
import { SessionPath } from '../../schemas/requests.ts';
import { SessionAccess } from '../../schemas/sessions.ts';

/**
 * POST /api/sessions/{id}/rotate-access: makes all addresses of the session worthless, of every
 * caller, and answers new ones. Each call rotates. It does not count as use of the session.
 */
export function rotateAccess(
  server: ApiServer,
  { context, views, addresses }: Pick<ApiDependencies, 'context' | 'views' | 'addresses'>,
): void {
  server.route({
    method: 'POST',
    url: '/api/sessions/:id/rotate-access',
    schema: {
      operationId: 'rotateSessionAccess',
      tags: ['Sessions'],
      summary: 'Replace the addresses of a session',
      description:
        'Makes every address of the session worthless and answers new ones. Within two seconds ' +
        'the old ones are refused, and connections opened with them are closed. The browser ' +
        'goes on, and the VNC password stays: it is of no use without an address. Before the ' +
        'session has its browser, `vnc_password` and `viewer_url` are null. Each call rotates.',
      params: SessionPath,
      response: { 200: response('The new addresses', SessionAccess) },
    },
    config: { action: 'control', refusals: ['SESSION_NOT_FOUND', 'SESSION_ENDED'] },
    async handler(request, reply) {
      const { caller } = request;
      const { id } = request.params;
      if (!isId(id)) return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const session = { organizationId: caller.organizationId, id };
      const command = { type: 'RotateAccess', now: context.now() } as const;
      const metadata = requestMetadata(request, caller);
      const handled = await handleSessionCommand(context, session, command, metadata);
      if (isRejection(handled)) return sendRejection(reply, handled);
      await untilReadable(views, handled.sequence);
      return reply.send(presentAccess(handled.state, caller, addresses));
    },
  });
}
