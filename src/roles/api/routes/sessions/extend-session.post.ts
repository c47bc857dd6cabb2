import type { Static } from 'typebox';
import { Type } from 'typebox';
import { isId } from '#events/subjects.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { derivedId } from '#src/kernel/ids.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import type { ExtendSession } from '#src/kernel/domain/session/commands.ts';
import { formatDuration } from '#src/kernel/domain/session/duration.ts';
import { keyedExtension } from '#src/kernel/domain/session/session.ts';
import { requestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { ExtendSessionBody, readDuration, SessionPath } from '../../schemas/requests.ts';
import { SessionExtended } from '../../schemas/sessions.ts';
import {
  fingerprintOf,
  idempotencyHeader,
  idempotencyKeyOf,
  replayedHeader,
} from '../../sessions/idempotency.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';

/** POST /api/sessions/{id}/extend: moves the expiry later by the duration. */
export function extendSession(server: ApiServer, dependencies: ApiDependencies): void {
  const { maxLifetimeMs, context, views } = dependencies;
  server.route({
    method: 'POST',
    url: '/api/sessions/:id/extend',
    schema: {
      operationId: 'extendSession',
      tags: ['Sessions'],
      summary: 'Extend a session',
      description:
        'Adds the duration to the expiry and reserves its credits, while the session has not ' +
        'ended and its expiry has not passed. The service recognizes the last 32 values of ' +
        '`Idempotency-Key` of each session, without a time limit.',
      params: SessionPath,
      headers: Type.Object(
        idempotencyHeader('a repeat with the same key and body extends nothing once more'),
      ),
      body: ExtendSessionBody,
      response: { 200: response('The new expiry', SessionExtended, { headers: replayedHeader }) },
    },
    config: {
      action: 'control',
      refusals: [
        'INVALID_DURATION',
        'SESSION_NOT_FOUND',
        'SESSION_NOT_ACTIVE',
        'INSUFFICIENT_CREDITS',
        'IDEMPOTENCY_CONFLICT',
      ],
    },
    async handler(request, reply) {
      const { caller } = request;
      const session = { organizationId: caller.organizationId, id: request.params.id };
      const key = idempotencyKeyOf(request.headers);
      const command = readCommand(session, request.body, {
        key,
        maxLifetimeMs,
        now: context.now(),
      });
      if (isRejection(command)) return sendRejection(reply, command);
      const metadata = requestMetadata(request, caller);
      const handled = await handleSessionCommand(context, session, command, metadata);
      if (isRejection(handled)) return sendRejection(reply, handled);
      await untilReadable(views, handled.sequence);
      const { isChanged, state } = handled;
      const earlier = isChanged ? null : keyedExtension(state, command.repeatable?.key);
      if (earlier !== null) void reply.header('idempotent-replayed', 'true');
      return reply.send({
        id: session.id,
        session_name: state.name,
        status: earlier?.status ?? state.status,
        expires_at: earlier?.expiresAt ?? state.expiresAt,
        message: `Session extended by ${formatDuration(command.byMs)}.`,
      });
    },
  });
}

/** The requested duration, or the rejection. */
function readCommand(
  { organizationId, id }: { organizationId: string; id: string },
  body: Static<typeof ExtendSessionBody>,
  { key, maxLifetimeMs, now }: { key: string | null; maxLifetimeMs: number; now: number },
): ExtendSession | Rejection {
  // Unlike a create, an extension has no default duration.
  const byMs = readDuration(body.duration ?? null);
  if (typeof byMs !== 'number') return byMs;
  if (!isId(id)) return reject('SESSION_NOT_FOUND', { session_id: id });
  const command = {
    type: 'ExtendSession',
    byMs,
    maxLifetimeMs,
    duration: String(body.duration),
    now,
  } as const;
  if (key === null) return command;
  const hash = derivedId('ext', organizationId, id, key);
  return { ...command, repeatable: { key: hash, fingerprint: fingerprintOf(body) } };
}
