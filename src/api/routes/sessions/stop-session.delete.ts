import type { FastifyReply, FastifyRequest } from 'fastify';
import type { SessionState } from '#events/session.ts';
import { isId } from '#events/subjects.ts';
import { isRejected, reject } from '#src/errors.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import type { Caller } from '../../auth/authenticate.ts';
import { causeOf, type ApiParts } from '../../dependencies.ts';
import { refuse } from '../../http/error-response.ts';
import { untilReadable } from '../../sessions/read-your-writes.ts';
import { parameter, type Route } from '../../http/route.ts';
import { SessionStopped } from '../../schemas/sessions.ts';

/**
 * DELETE /api/sessions/{id}: answered once the stop is durable and every reader sees it; the
 * browser goes after that. Again on a session that is ending or has ended: answered as well, and
 * nothing written.
 */
export function stopSession(parts: ApiParts): Route {
  async function handle(request: FastifyRequest, reply: FastifyReply, caller: Caller) {
    const id = parameter(request, 'id');
    if (!isId(id)) return refuse(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
    const { desk, views } = parts;
    const command = { type: 'StopSession', reason: 'user', now: desk.now() } as const;
    const { organizationId } = caller;
    const cause = causeOf(request, caller);
    const handled = await handleSession(desk, { organizationId, id }, command, cause);
    if (isRejected(handled)) return refuse(reply, handled);
    await untilReadable(views, handled.sequence);
    return reply.send({ message: messageOf(handled.state), session_id: id });
  }
  return {
    method: 'DELETE',
    path: '/api/sessions/:id',
    operationId: 'stopSession',
    summary: 'Stop a session',
    details:
      'Answers once the stop is durable; the browser goes after that, and credits not used come ' +
      'back. Stopping a session that is stopping or has ended is no error and changes nothing; ' +
      'the message says where it had failed.',
    action: 'control',
    answer: { status: 200, schema: SessionStopped, description: 'It is stopped, or had ended' },
    refusals: ['SESSION_NOT_FOUND'],
    handle,
  };
}

function messageOf({ name, status }: SessionState): string {
  if (status === 'failed') return `Session ${name} had already failed.`;
  if (status === 'stopped') return `Session ${name} has been stopped.`;
  return `Session ${name} has been stopped; its browser is being removed.`;
}
