import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type, type Static } from 'typebox';
import { sessionsOf } from '#events/subjects.ts';
import { idOf } from '#projections/projection.ts';
import {
  openSessions,
  organizationSessions,
  type SessionRow,
} from '#projections/organization-sessions.ts';
import { readList } from '#projections/store/queries.ts';
import { isRejected, reject, Unavailable, type Rejected } from '#src/errors.ts';
import { derivedId, newId } from '#src/ids.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import type { CreateSession } from '#src/domain/session/commands.ts';
import { beyondLifetime } from '#src/domain/session/duration.ts';
import { begunOf } from '../../http/admission.ts';
import type { Caller } from '../../auth/authenticate.ts';
import { capacityRefusal } from '../../sessions/capacity.ts';
import { takeCreatePhases } from '../../sessions/create-phases.ts';
import {
  fingerprintOf,
  idempotencyHeader,
  readIdempotencyKey,
  replayedHeader,
} from '../../sessions/idempotency.ts';
import { causeOf, loadSession, type ApiParts } from '../../dependencies.ts';
import { presentSession } from '../../schemas/present-session.ts';
import { refuse } from '../../http/error-response.ts';
import { untilReadable } from '../../sessions/read-your-writes.ts';
import { createBodyReader, readDuration } from '../../http/validation.ts';
import { CreateSessionBody } from '../../schemas/requests.ts';
import type { Route } from '../../http/route.ts';
import { Session } from '../../schemas/sessions.ts';
import { generateName } from '../../sessions/session-name.ts';
import { watchOutcome } from '../../sessions/watch-outcome.ts';

const readBody = createBodyReader(CreateSessionBody);

const ANSWER_HEADERS = {
  Location: { schema: Type.String(), description: 'path of the session' },
  ...replayedHeader,
  'Server-Timing': {
    schema: Type.String(),
    description:
      'milliseconds until it was accepted, had its browser, was readable everywhere; `desc` says ' +
      'whether the browser had waited, `warm`, or was launched for it, `cold`',
  },
};

/**
 * POST /api/sessions: accepted, counted and charged in one step, then answered when it has its
 * browser.
 */
export function createSession(parts: ApiParts): Route {
  return {
    method: 'POST',
    path: '/api/sessions',
    operationId: 'createSession',
    summary: 'Create a session',
    details:
      'Takes a slot and reserves the credits of the whole duration, then waits for a browser. ' +
      'The session is `active` as a rule. Where no browser was free in time, or with ' +
      '`Prefer: respond-async`, it is `creating` or `queued`: read it until it is `active`.',
    action: 'control',
    headers: {
      ...idempotencyHeader('a repeat with the same key and body answers the same session'),
      Prefer: {
        schema: Type.String(),
        description: 'respond-async: answer at once, without waiting for the browser',
      },
    },
    body: CreateSessionBody,
    answer: { status: 201, schema: Session, description: 'The session', headers: ANSWER_HEADERS },
    refusals: [
      'INVALID_DURATION',
      'INSUFFICIENT_CREDITS',
      'IDEMPOTENCY_CONFLICT',
      'SESSION_LIMIT_EXCEEDED',
      'NO_SERVERS_AVAILABLE',
    ],
    begin: () => capacityRefusal(parts.views, parts.queueMax),
    handle: (request, reply, caller) => create(parts, request, reply, caller),
  };
}

async function create(
  parts: ApiParts,
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller,
): Promise<FastifyReply> {
  const asked = readRequest(request, caller, {
    now: parts.desk.now(),
    maxLifetimeMs: parts.maxLifetimeMs,
  });
  if (isRejected(asked)) return refuse(reply, asked);
  const refusal = (await begunOf(request)) as Rejected | null;
  if (refusal !== null && !(await isRepeat(parts, caller, asked))) return refuse(reply, refusal);

  const { organizationId, limits } = caller;
  const identity = { organizationId, id: asked.id };
  using outcome = watchOutcome(parts.tail, asked.id);
  const phases = takeCreatePhases(parts.metrics, request, outcome);
  const cause = causeOf(request, caller);
  const handled = await handleSession(parts.desk, identity, asked.command, cause, limits);
  if (isRejected(handled)) return refuse(reply, await withSessionIds(parts, handled, caller));
  phases.accepted(handled.isChanged, asked.id);
  const isAsync = /\brespond-async\b/i.test(String(request.headers['prefer'] ?? ''));
  const settled = await outcome.settled(handled, isAsync ? 0 : parts.createWaitMs);
  const settledAt = performance.now();
  phases.settled(handled.isChanged);
  await untilReadable(parts.views, settled.sequence);

  if (!handled.isChanged) void reply.header('idempotent-replayed', 'true');
  const start = isAsync ? null : outcome.start();
  const { startedAt, acceptedAt } = phases.timing();
  const how = start === null ? '' : `;desc=${start}`;
  void reply.header(
    'server-timing',
    `accept;dur=${(acceptedAt - startedAt).toFixed(1)}, ` +
      `browser;dur=${(settledAt - acceptedAt).toFixed(1)}${how}, ` +
      `readable;dur=${(performance.now() - settledAt).toFixed(1)}`,
  );
  const body = presentSession(settled.state, caller, parts.addresses);
  return reply
    .code(201)
    .header('location', `/api/sessions/${asked.id}`)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(body));
}

/** A repeat asks for no new browser: its answer is there, however full the servers are. */
async function isRepeat(
  { desk }: ApiParts,
  { organizationId }: Caller,
  { id, command }: { id: string; command: CreateSession },
): Promise<boolean> {
  return command.fingerprint !== null && (await loadSession(desk, organizationId, id)) !== null;
}

/** What is asked for, under which id; or what is wrong with it. */
function readRequest(
  request: FastifyRequest,
  caller: Caller,
  { now, maxLifetimeMs }: { now: number; maxLifetimeMs: number },
): { id: string; command: CreateSession } | Rejected {
  const body = readBody(request.body);
  if (isRejected(body)) return body;
  const key = readIdempotencyKey(request);
  if (key !== null && typeof key !== 'string') return key;
  const asked = readDuration(body.duration);
  if (typeof asked !== 'number') return asked;
  const isByDefault = body.duration === undefined;
  if (asked > maxLifetimeMs && !isByDefault)
    return beyondLifetime(String(body.duration), maxLifetimeMs);
  const durationMs = Math.min(asked, maxLifetimeMs);
  const idleTimeoutMs =
    body.idle_timeout === undefined ? null : readDuration(body.idle_timeout, 'idle_timeout');
  if (idleTimeoutMs !== null && typeof idleTimeoutMs !== 'number') return idleTimeoutMs;
  if (body.timezone !== undefined && !isTimezone(body.timezone))
    return reject('INVALID_REQUEST', { field: 'timezone', timezone: body.timezone });
  return {
    id: key === null ? newId('ses') : derivedId('ses', caller.organizationId, key),
    command: toCommand(body, caller, {
      durationMs,
      idleTimeoutMs,
      now,
      fingerprint: key === null ? null : fingerprintOf(body),
    }),
  };
}

function toCommand(
  body: Static<typeof CreateSessionBody>,
  caller: Caller,
  read: Pick<CreateSession, 'durationMs' | 'idleTimeoutMs' | 'now' | 'fingerprint'>,
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
    },
    ...read,
  };
}

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/** How long a refusal waits for the list to hold all sessions that it is made of. */
const LISTED_WITHIN_MS = 1_000;

/** The limit's refusal names the sessions that count, as the list has them now. */
async function withSessionIds(
  parts: ApiParts,
  rejected: Rejected,
  caller: Caller,
): Promise<Rejected> {
  const { views } = parts;
  if (rejected.rejected !== 'SESSION_LIMIT_EXCEEDED' || !views.isReachable()) return rejected;
  try {
    const ids = await openIds(parts, caller);
    return { ...rejected, context: { ...rejected.context, session_ids: ids } };
  } catch (error) {
    // It is a refusal all the same, while the read model is away or folded anew.
    if (error instanceof Unavailable) return rejected;
    throw error;
  }
}

async function openIds(
  { desk, views }: ApiParts,
  { organizationId, limits }: Caller,
): Promise<string[]> {
  const newest = await desk.log.lastSequence([sessionsOf(organizationId)]);
  await views.reached(idOf(organizationSessions), newest, LISTED_WITHIN_MS);
  const list = openSessions(organizationId);
  const max = limits.concurrentSessions;
  const open = await readList<SessionRow>(views, idOf(organizationSessions), list, max);
  return open.map(({ id }) => id);
}
