import type { FastifyReply, FastifyRequest } from 'fastify';
import type { SessionState } from '#events/session.ts';
import { isId } from '#events/subjects.ts';
import { idOf } from '#projections/projection.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import { reject, Unavailable } from '#src/errors.ts';
import { admission } from '../../http/admission.ts';
import { asOfParameter, readAsOf } from '../../time-travel/as-of.ts';
import type { Caller } from '../../auth/authenticate.ts';
import { loadSession, type ApiParts } from '../../dependencies.ts';
import type { Past } from '../../time-travel/past.ts';
import { createRenderer, presentSession } from '../../schemas/present-session.ts';
import { refuse } from '../../http/error-response.ts';
import { mayWait, queuePlace } from '../../sessions/queue-place.ts';
import { parameter, type Route } from '../../http/route.ts';
import { Session } from '../../schemas/sessions.ts';

/**
 * GET /api/sessions/{id}: from the read model where that is current, else from the log; as of a
 * moment of the past always from the log.
 */
export function getSession(parts: ApiParts, past: Past): Route {
  const render = createRenderer(parts.addresses);

  async function handle(request: FastifyRequest, reply: FastifyReply, caller: Caller) {
    const id = parameter(request, 'id');
    const { organizationId } = caller;
    const at = readAsOf((request.query as { as_of?: unknown }).as_of, parts.desk.now());
    const isPast = typeof at === 'number';
    const [refusal, current] = await Promise.all([
      admission(request, parts.desk.now()),
      at === null ? currentView(parts, organizationId, id) : null,
    ]);
    if (refusal !== null) return refuse(reply, refusal);
    if (at !== null && !isPast) return refuse(reply, at);
    if (isPast) {
      const then = isId(id) ? await past.session(organizationId, id, at) : null;
      if (then === null) return refuse(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const session = presentSession(then.state, caller, parts.addresses);
      return reply.send({ ...session, ...then.place });
    }
    if (current === null) return refuse(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
    const body = render(current, sessionKey(organizationId, id), caller);
    const place = mayWait(current)
      ? await queuePlace(parts, JSON.parse(current) as SessionState)
      : null;
    // A place changes without the session: it is laid beside what is rendered once.
    const told = place === null ? body : `${body.slice(0, -1)},${JSON.stringify(place).slice(1)}`;
    return reply.type('application/json; charset=utf-8').send(told);
  }
  return {
    method: 'GET',
    path: '/api/sessions/:id',
    operationId: 'getSession',
    summary: 'Read a session',
    action: 'read',
    admitsItself: true,
    query: asOfParameter,
    answer: { status: 200, schema: Session, description: 'The session' },
    refusals: ['SESSION_NOT_FOUND'],
    handle,
  };
}

/**
 * The session's view as JSON text; null where the organization has none of that id. The read model
 * answers only while it holds all that this process has seen, so that no reader steps back in time;
 * what it does not have, the log decides.
 */
async function currentView(
  { desk, views, tail }: ApiParts,
  organizationId: string,
  id: string,
): Promise<string | null> {
  if (!isId(id)) return null;
  const seen = tail.position();
  try {
    const projection = idOf(sessionView);
    const [checkpoint, view] = await Promise.all([
      views.checkpoint(projection),
      views.read(projection, sessionKey(organizationId, id)),
    ]);
    if (view !== null && checkpoint >= seen) return view;
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
  }
  const session = await loadSession(desk, organizationId, id);
  return session === null ? null : JSON.stringify(session.state);
}
