import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type, type Static } from 'typebox';
import { isId } from '#events/subjects.ts';
import { isRejection, reject, type Rejection } from '#src/errors.ts';
import { loadState } from '#src/event-store/load-state.ts';
import { derivedId, newId } from '#src/ids.ts';
import {
  handleCreateSession,
  type CreatePhases,
  type CreateResult,
} from '#src/commands/create-session.ts';
import type { WantedProfile } from '#src/commands/session-profile.ts';
import type { CreateSession } from '#src/domain/session/commands.ts';
import { unknownExtensions } from '#src/domain/organization/extensions.ts';
import { beyondLifetime } from '#src/domain/session/duration.ts';
import { tooMuchText } from '#src/domain/session/text-size.ts';
import type { Metrics } from '#src/telemetry/metrics.ts';
import type { Caller } from '../../auth/authenticate.ts';
import {
  fingerprintOf,
  idempotencyHeader,
  idempotencyKeyOf,
  replayedHeader,
  spentKey,
} from '../../sessions/idempotency.ts';
import { createOpenSessionIds, type OpenSessionIds } from '../../sessions/open-session-ids.ts';
import { loadSession, requestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { readEgress, withoutPassword, type ProxyPasswordSealer } from '../../schemas/egress.ts';
import { presentSession } from '../../schemas/present-session.ts';
import { arrivedAt } from '../../http/admission.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { spanOf } from '../../http/trace-requests.ts';
import { emulationOf } from '../../schemas/emulation.ts';
import { CreateSessionBody, readDuration } from '../../schemas/requests.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { invalid } from '../../http/validation.ts';
import { Session } from '../../schemas/sessions.ts';
import { generateName } from '../../sessions/session-name.ts';

const RESPONSE_HEADERS = {
  Location: Type.String({ description: 'path of the session' }),
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
  });
  if (isRejection(asked)) return sendRejection(reply, (await admitted) ?? asked);
  const unknown = await refuseUnknownExtensions(dependencies.context, organizationId, asked);
  if (unknown !== null) return sendRejection(reply, (await admitted) ?? unknown);
  let answer = '';
  const isAsync = /\brespond-async\b/i.test(String(request.headers['prefer'] ?? ''));
  const created = await handleCreateSession(dependencies, {
    identity: { organizationId, id: asked.id },
    command: asked.command,
    metadata: requestMetadata(request, caller),
    limits,
    profile: wantedProfile(body),
    admitted,
    waitMs: isAsync ? 0 : dependencies.createWaitMs,
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
  return reply
    .code(201)
    .header('location', `/api/sessions/${asked.id}`)
    .header('server-timing', serverTiming(created.phases, isAsync ? null : created.start))
    .type('application/json; charset=utf-8')
    .send(answer);
}

/** Null: the organization has the extensions, or the request repeats one that was accepted. */
async function refuseUnknownExtensions(
  context: ApiDependencies['context'],
  organizationId: string,
  { id, command }: { id: string; command: CreateSession },
): Promise<Rejection | null> {
  const { extensions } = command.browser;
  if (extensions === undefined) return null;
  const ref = { kind: 'organization', organizationId } as const;
  // From the leader: another process may have got the upload a moment ago.
  const fresh = { fromLeader: true };
  const { state } = await loadState<'organization'>(context.eventStore, ref, fresh);
  const unknown = unknownExtensions(extensions, state);
  if (unknown.length === 0) return null;
  const isRepeat = (await loadSession(context, organizationId, id)) !== null;
  return isRepeat ? null : reject('UNKNOWN_EXTENSION', { extension_ids: unknown });
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

/** The requested session and its id, or the rejection. */
function readRequest(
  body: Static<typeof CreateSessionBody>,
  caller: Caller,
  { key, now, maxLifetimeMs, passwords }: Read,
): { id: string; command: CreateSession } | Rejection {
  const asked = readDuration(body.duration);
  if (typeof asked !== 'number') return asked;
  const isByDefault = body.duration === undefined;
  if (asked > maxLifetimeMs && !isByDefault)
    return beyondLifetime(String(body.duration), maxLifetimeMs);
  const tooMuch = tooMuchText(body);
  if (tooMuch !== null) return tooMuch;
  const durationMs = Math.min(asked, maxLifetimeMs);
  const idleTimeoutMs =
    body.idle_timeout === undefined ? null : readDuration(body.idle_timeout, 'idle_timeout');
  if (idleTimeoutMs !== null && typeof idleTimeoutMs !== 'number') return idleTimeoutMs;
  if (body.profile !== undefined && !isId(body.profile.id))
    return reject('PROFILE_NOT_FOUND', { profile_id: body.profile.id });
  if (body.timezone !== undefined && !isTimezone(body.timezone))
    return reject('INVALID_REQUEST', { field: 'timezone', timezone: body.timezone });
  if (body.record === true && body.headless === true)
    return invalid({ record: true, headless: true }, 'A headless session has no screen to record.');
  const id = key === null ? newId('ses') : derivedId('ses', caller.organizationId, key);
  const egress = body.egress === undefined ? null : readEgress(body.egress, id, passwords);
  if (egress !== null && isRejection(egress)) return egress;
  const command = toCommand(body, caller, {
    durationMs,
    idleTimeoutMs,
    now,
    fingerprint: key === null ? null : fingerprintOf(withoutPassword(body, passwords)),
    ...(egress === null ? {} : { egress }),
  });
  return { id, command };
}

type Read = {
  key: string | null;
  now: number;
  maxLifetimeMs: number;
  passwords: ProxyPasswordSealer;
};

function toCommand(
  body: Static<typeof CreateSessionBody>,
  caller: Caller,
  read: Pick<CreateSession, 'durationMs' | 'idleTimeoutMs' | 'now' | 'fingerprint' | 'egress'>,
): CreateSession {
  return {
    type: 'CreateSession',
    name: body.session_name ?? generateName(),
    description: body.description ?? '',
    userId: caller.userId,
    labels: body.labels ?? {},
    browser: {
      viewport: body.viewport ?? null,
      locale: body.locale ?? null,
      timezone: body.timezone ?? null,
      ...(body.headless === true ? { headless: true } : {}),
      ...(body.extensions?.length ? { extensions: body.extensions } : {}),
      ...emulationOf(body),
    },
    ...(body.record === true ? { record: true } : {}),
    queueWeight: caller.limits.queueWeight,
    ...(body.black_box === false ? { blackBox: false } : {}),
    ...read,
  };
}

function wantedProfile({ profile }: Static<typeof CreateSessionBody>): WantedProfile | null {
  if (profile === undefined) return null;
  const { id, version = null, save = false } = profile;
  return { id, version, save };
}

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
