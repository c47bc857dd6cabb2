import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type, type Static } from 'typebox';
import { isRejection } from '#src/kernel/errors.ts';
import {
  handleCreateSession,
  type CreatePhases,
  type CreateResult,
} from '#src/commands/create-session.ts';
import type { Metrics } from '#src/kernel/telemetry/metrics.ts';
import {
  idempotencyHeader,
  idempotencyKeyOf,
  replayedHeader,
  spentKey,
} from '../../sessions/idempotency.ts';
import {
  readRequest,
  refuseUnknownExtensions,
  wantedProfile,
} from '../../sessions/requested-session.ts';
import { createOpenSessionIds, type OpenSessionIds } from '../../sessions/open-session-ids.ts';
import { requestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { presentSession } from '../../schemas/present-session.ts';
import { arrivedAt } from '../../http/admission.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { spanOf } from '../../http/trace-requests.ts';
import { CreateSessionBody } from '../../schemas/requests.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { Session } from '../../schemas/sessions.ts';

const RESPONSE_HEADERS = {
  Location: Type.String({ description: 'the session, relative to the address of the request' }),
  ...replayedHeader,
  'Server-Timing': Type.String({
    description:
      'milliseconds until it was accepted, had its browser, was readable everywhere; `desc` says ' +
      'whether the browser had waited, `warm`, or was launched for it, `cold`',
  }),
};

const Headers = Type.Object({
  ...idempotencyHeader(
    'a repeat with the same key and body answers the same session, until 24 hours after its end; ' +
      'then it is 409 `IDEMPOTENCY_CONFLICT`',
  ),
  Prefer: Type.Optional(
    Type.String({
      description: 'respond-async: answer at once, without waiting for the browser',
    }),
  ),
});

/**
 * POST /api/sessions: accepts, counts and charges the session in one step, and answers when it has
 * its browser.
 */
export function createSession(server: ApiServer, dependencies: ApiDependencies): void {
  const openSessionIds = createOpenSessionIds(dependencies);
  server.route({
    method: 'POST',
    url: '/api/sessions',
    schema: {
      operationId: 'createSession',
      tags: ['Sessions'],
      summary: 'Create a session',
      description:
        'Takes a slot and reserves the credits of the whole duration, then waits for a browser. ' +
        'The session is `active` as a rule. Where no browser was free in time, or with ' +
        '`Prefer: respond-async`, it is `creating` or `queued`: read it until it is `active`.',
      headers: Headers,
      body: CreateSessionBody,
      response: { 201: response('The session', Session, { headers: RESPONSE_HEADERS }) },
    },
    config: {
      action: 'control',
      refusals: [
        'INVALID_DURATION',
        'UNKNOWN_EXTENSION',
        'INSUFFICIENT_CREDITS',
        'IDEMPOTENCY_CONFLICT',
        'PROFILE_NOT_FOUND',
        'PROFILE_VERSION_NOT_FOUND',
        'PROFILE_IN_USE',
        'SESSION_LIMIT_EXCEEDED',
        'NO_SERVERS_AVAILABLE',
        'EGRESS_UNAVAILABLE',
      ],
      admission: 'handler',
      cost: costs.createSession,
    },
    handler: (request, reply) =>
      create({ ...dependencies, openSessionIds }, request, request.body, reply),
  });
}

async function create(
  dependencies: ApiDependencies & { openSessionIds: OpenSessionIds },
  request: FastifyRequest,
  body: Static<typeof CreateSessionBody>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { caller, admitted } = request;
  const { organizationId, limits } = caller;
  const asked = readRequest(body, caller, {
    key: idempotencyKeyOf(request.headers),
    now: dependencies.context.now(),
    maxLifetimeMs: dependencies.maxLifetimeMs,
    passwords: dependencies.proxyPasswords,
    isOwnHost: dependencies.ownAddresses.isOwnHost,
    mcpSessionId: request.door?.mcpSessionId,
  });
  if (isRejection(asked)) return sendRejection(reply, (await admitted) ?? asked);
  const unknown = await refuseUnknownExtensions(dependencies.context, organizationId, asked);
  if (unknown !== null) return sendRejection(reply, (await admitted) ?? unknown);
  let answer = '';
  const isAsync = /\brespond-async\b/i.test(String(request.headers['prefer'] ?? ''));
  const waitMs = Math.min(dependencies.createWaitMs, request.door?.createWaitMs ?? Infinity);
  const created = await handleCreateSession(dependencies, {
    identity: { organizationId, id: asked.id },
    command: asked.command,
    metadata: requestMetadata(request, caller),
    limits,
    profile: wantedProfile(body),
    admitted,
    waitMs: isAsync ? 0 : waitMs,
    whenSettled(state) {
      answer = JSON.stringify(presentSession(state, caller, dependencies.addresses));
    },
    span: spanOf(request),
  });
  if (isRejection(created)) {
    const isFull = created.code === 'SESSION_LIMIT_EXCEEDED';
    const ids = isFull ? await dependencies.openSessionIds(organizationId) : {};
    return sendRejection(reply, { ...created, context: { ...created.context, ...ids } });
  }
  const spent = created.isChanged ? null : spentKey(created.state, dependencies.context.now());
  if (spent !== null) return sendRejection(reply, spent);

  if (created.isChanged) recordPhases(dependencies.metrics, arrivedAt(request), created.phases);
  else void reply.header('idempotent-replayed', 'true');
  return (
    reply
      .code(201)
      // Relative to /api/sessions: a proxy may have the service below a path.
      .header('location', `sessions/${asked.id}`)
      .header('server-timing', serverTiming(created.phases, isAsync ? null : created.start))
      .type('application/json; charset=utf-8')
      .send(answer)
  );
}

function recordPhases(
  metrics: Pick<Metrics, 'createPhase'>,
  arrivedAtMs: number,
  { admittedAt, acceptedAt, assignedAt, activatedAt }: CreatePhases,
): void {
  metrics.createPhase('admission', admittedAt - arrivedAtMs);
  metrics.createPhase('append', acceptedAt - admittedAt);
  const placedAt = assignedAt ?? activatedAt;
  if (placedAt !== null) metrics.createPhase('placement', placedAt - acceptedAt);
  if (assignedAt !== null && activatedAt !== null)
    metrics.createPhase('launch', activatedAt - assignedAt);
}

function serverTiming(
  { admittedAt, acceptedAt, settledAt, readableAt }: CreatePhases,
  start: CreateResult['start'],
): string {
  const how = start === null ? '' : `;desc=${start}`;
  return (
    `accept;dur=${(acceptedAt - admittedAt).toFixed(1)}, ` +
    `browser;dur=${(settledAt - acceptedAt).toFixed(1)}${how}, ` +
    `readable;dur=${(readableAt - settledAt).toFixed(1)}`
  );
}
