import { Type } from 'typebox';
import { isId } from '#events/subjects.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { derivedId, newId } from '#src/kernel/ids.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';
import { loadSession, requestMetadata, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { response, type ApiServer } from '#src/roles/api/http/route.ts';
import { SessionPath } from '#src/roles/api/schemas/requests.ts';
import {
  durationIn,
  Handoff,
  noScreen,
  presentHandoff,
  RequestHandoffBody,
} from '#src/roles/api/schemas/steering.ts';
import {
  idempotencyHeader,
  idempotencyKeyOf,
  replayedHeader,
} from '#src/roles/api/sessions/idempotency.ts';

const TIMEOUT_DEFAULT = '10m';

/** POST /api/sessions/{id}/handoffs: asks a person to take the browser for a while. */
export function requestHandoff(
  server: ApiServer,
  { context, views }: Pick<ApiDependencies, 'context' | 'views'>,
): void {
  server.route({
    method: 'POST',
    url: '/api/sessions/:id/handoffs',
    schema: {
      operationId: 'requestHandoff',
      tags: ['Hand-offs'],
      summary: 'Ask a person for help',
      description:
        'Automation asks a person to do something in the browser. Until a person takes it, ' +
        'nothing changes. While a person has it, the session’s CDP commands wait, in order, and ' +
        'other viewers only watch; the commands go on when the person gives it back, or when ' +
        '`timeout` (10 minutes, if it is left out) is over. A session has one open hand-off at a ' +
        'time, and is not stopped as idle meanwhile.',
      params: SessionPath,
      headers: Type.Object(
        idempotencyHeader('a repeat with the same key answers the hand-off of the first request'),
      ),
      body: RequestHandoffBody,
      response: { 201: response('It waits for a person', Handoff, { headers: replayedHeader }) },
    },
    config: {
      action: 'control',
      refusals: [
        'INVALID_DURATION',
        'SESSION_NOT_FOUND',
        'SESSION_NOT_READY',
        'SESSION_ENDED',
        'HANDOFF_CONFLICT',
        'IDEMPOTENCY_CONFLICT',
      ],
    },
    async handler(request, reply) {
      const { caller } = request;
      const { organizationId, userId } = caller;
      const { id } = request.params;
      const { instructions, timeout = TIMEOUT_DEFAULT } = request.body;
      const timeoutMs = durationIn('timeout', timeout);
      if (typeof timeoutMs !== 'number') return sendRejection(reply, timeoutMs);
      const unknown = reject('SESSION_NOT_FOUND', { session_id: id });
      if (!isId(id)) return sendRejection(reply, unknown);
      const session = await loadSession(context, organizationId, id);
      const refusal = session === null ? unknown : noScreen(session.state);
      if (refusal !== null) return sendRejection(reply, refusal);
      const key = idempotencyKeyOf(request.headers);
      const handoffId = key === null ? newId('hof') : derivedId('hof', organizationId, id, key);
      const now = context.now();
      const asked = { handoffId, instructions, timeoutMs, by: userId, now };
      const handled = await handleSessionCommand(
        context,
        { organizationId, id },
        { type: 'RequestHandoff', ...asked },
        requestMetadata(request, caller),
      );
      if (isRejection(handled)) return sendRejection(reply, handled);
      const { handoff } = handled.state;
      if (handoff?.id !== handoffId) throw new Error(`hand-off ${handoffId} is not the last one`);
      if (handoff.instructions !== instructions)
        return sendRejection(reply, reject('IDEMPOTENCY_CONFLICT', { session_id: id }));
      await untilReadable(views, handled.sequence);
      if (!handled.isChanged) void reply.header('idempotent-replayed', 'true');
      return reply.code(201).send(presentHandoff(handled.state, handoff));
    },
  });
}
