import type { FastifyReply, FastifyRequest } from 'fastify';
import { isId } from '#events/subjects.ts';
import { isRejected, reject, type Rejected } from '#src/errors.ts';
import { derivedId } from '#src/ids.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import type { ExtendSession } from '#src/domain/session/commands.ts';
import { formatDuration } from '#src/domain/session/duration.ts';
import { keyedExtension } from '#src/domain/session/session.ts';
import type { Caller } from '../../auth/authenticate.ts';
import {
  fingerprintOf,
  idempotencyHeader,
  readIdempotencyKey,
  replayedHeader,
} from '../../sessions/idempotency.ts';
import { causeOf, type ApiParts } from '../../dependencies.ts';
import { refuse } from '../../http/error-response.ts';
import { untilReadable } from '../../sessions/read-your-writes.ts';
import { createBodyReader, readDuration } from '../../http/validation.ts';
import { ExtendSessionBody } from '../../schemas/requests.ts';
import { parameter, type Route } from '../../http/route.ts';
import { SessionExtended } from '../../schemas/sessions.ts';

const readBody = createBodyReader(ExtendSessionBody);

/** POST /api/sessions/{id}/extend: later by the duration, counted from the present expiry. */
export function extendSession(parts: ApiParts): Route {
  return {
    method: 'POST',
    path: '/api/sessions/:id/extend',
    operationId: 'extendSession',
    summary: 'Extend a session',
    details:
      'Moves the expiry by the duration, counted from the present one, and reserves its credits. ' +
      'An `Idempotency-Key` is the session’s own; the last 32 are known again, however late.',
    action: 'control',
    headers: idempotencyHeader('a repeat with the same key and body extends nothing once more'),
    body: ExtendSessionBody,
    answer: {
      status: 200,
      schema: SessionExtended,
      description: 'The new expiry',
      headers: replayedHeader,
    },
    refusals: [
      'INVALID_DURATION',
      'SESSION_NOT_FOUND',
      'SESSION_NOT_ACTIVE',
      'INSUFFICIENT_CREDITS',
      'IDEMPOTENCY_CONFLICT',
    ],
    handle: (request, reply, caller) => extend(parts, request, reply, caller),
  };
}

async function extend(
  parts: ApiParts,
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller,
): Promise<FastifyReply> {
  const id = parameter(request, 'id');
  const { organizationId } = caller;
  const { maxLifetimeMs, desk, views } = parts;
  const command = readRequest(request, { organizationId, id }, maxLifetimeMs);
  if (isRejected(command)) return refuse(reply, command);
  const cause = causeOf(request, caller);
  const handled = await handleSession(desk, { organizationId, id }, command, cause);
  if (isRejected(handled)) return refuse(reply, handled);
  await untilReadable(views, handled.sequence);
  const { name, status, expiresAt } = handled.state;
  const earlier = handled.isChanged ? null : keyedExtension(handled.state, command.repeatable?.key);
  if (earlier !== null) void reply.header('idempotent-replayed', 'true');
  const message = `Session extended by ${formatDuration(command.byMs)}.`;
  return reply.send({
    id,
    session_name: name,
    status: earlier?.status ?? status,
    expires_at: earlier?.expiresAt ?? expiresAt,
    message,
  });
}

/** What is asked for, or what is wrong with it. */
function readRequest(
  request: FastifyRequest,
  { organizationId, id }: { organizationId: string; id: string },
  maxLifetimeMs: number,
): ExtendSession | Rejected {
  const body = readBody(request.body);
  if (isRejected(body)) return body;
  const key = readIdempotencyKey(request);
  if (key !== null && typeof key !== 'string') return key;
  // Unlike in a create there is no default: an extension says by how much.
  const byMs = readDuration(body.duration ?? null);
  if (typeof byMs !== 'number') return byMs;
  if (!isId(id)) return reject('SESSION_NOT_FOUND', { session_id: id });
  const command = {
    type: 'ExtendSession',
    byMs,
    maxLifetimeMs,
    duration: String(body.duration),
  } as const;
  if (key === null) return command;
  const hash = derivedId('ext', organizationId, id, key);
  return { ...command, repeatable: { key: hash, fingerprint: fingerprintOf(body) } };
}
