import type { SessionState } from '#events/session.ts';
import type { EventMetadata } from '#events/envelope.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { requestMetadata, loadSession, type ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { presentAccess } from '../../schemas/present-session.ts';
import { SessionPath } from '../../schemas/requests.ts';
import { SessionAccess } from '../../schemas/sessions.ts';
import { notActive } from '../../sessions/current-session.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';
import type { Caller } from '../../auth/authenticate.ts';

/** GET /api/sessions/{id}/access: the addresses to connect to; counts as use of the session. */
export function sessionAccess(server: ApiServer, dependencies: ApiDependencies): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/access',
    schema: {
      operationId: 'getSessionAccess',
      tags: ['Sessions'],
      summary: 'How to connect to a session',
      description:
        'Pass the CDP address unchanged to `connectOverCDP` or `puppeteer.connect`. Pass the VNC ' +
        'address and the password to a viewer that speaks websockify; a headless session has ' +
        'none. Each API key gets addresses of its own, which are refused once it is revoked. ' +
        'This request counts as use of the session.',
      params: SessionPath,
      response: { 200: response('Addresses and password', SessionAccess) },
    },
    config: {
      // A connection controls the browser: a viewer may see the session, not drive it.
      action: 'control',
      refusals: ['SESSION_NOT_FOUND', 'SESSION_NOT_READY', 'SESSION_ENDED'],
    },
    async handler(request, reply) {
      const { id } = request.params;
      const { caller } = request;
      const session = await loadSession(dependencies.context, caller.organizationId, id);
      if (session === null)
        return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const refusal = notActive(session.state);
      if (refusal !== null) return sendRejection(reply, refusal);
      const metadata = requestMetadata(request, caller);
      const current = (await recordAccess(dependencies, metadata, { caller, id })) ?? session.state;
      const ended = notActive(current);
      if (ended !== null) return sendRejection(reply, ended);
      return reply.send(presentAccess(current, caller, dependencies.addresses));
    },
  });
}

/**
 * Once a minute at most; the command decides that. Returns the session as the leader has it: a
 * replica may not know of a rotation that was answered a moment ago.
 */
async function recordAccess(
  dependencies: ApiDependencies,
  metadata: EventMetadata,
  { caller: { organizationId }, id }: { caller: Caller; id: string },
): Promise<SessionState | null> {
  const command = { type: 'RecordAccess', via: 'api', now: dependencies.context.now() } as const;
  const handled = await handleSessionCommand(
    dependencies.context,
    { organizationId, id },
    command,
    metadata,
  );
  if (isRejection(handled)) return null;
  if (handled.isChanged) await untilReadable(dependencies.views, handled.sequence);
  return handled.state;
}
