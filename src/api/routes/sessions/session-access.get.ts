import type { FastifyReply, FastifyRequest } from 'fastify';
import type { SessionState } from '#events/session.ts';
import { reject } from '#src/errors.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import { isFinal } from '#src/domain/session/session.ts';
import type { Caller } from '../../auth/authenticate.ts';
import { causeOf, loadSession, type ApiParts } from '../../dependencies.ts';
import { connectionOf } from '../../schemas/present-session.ts';
import { refuse } from '../../http/error-response.ts';
import { untilReadable } from '../../sessions/read-your-writes.ts';
import { parameter, type Route } from '../../http/route.ts';
import { SessionAccess } from '../../schemas/sessions.ts';

/** A waiting session may have its browser in a second. */
const RETRY_AFTER_SECONDS = 1;

/** GET /api/sessions/{id}/access: how to connect; counts as use of the session. */
export function sessionAccess(parts: ApiParts): Route {
  async function handle(request: FastifyRequest, reply: FastifyReply, caller: Caller) {
    const id = parameter(request, 'id');
    const session = await loadSession(parts.desk, caller.organizationId, id);
    if (session === null) return refuse(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
    const refusal = notActive(session.state);
    if (refusal !== null) return refuse(reply, refusal);
    await recordAccess(parts, request, caller, id);
    return reply.send(presentAccess(session.state, caller, parts));
  }
  return {
    method: 'GET',
    path: '/api/sessions/:id/access',
    operationId: 'getSessionAccess',
    summary: 'How to connect to a session',
    details:
      'The CDP address goes to `connectOverCDP` or `puppeteer.connect` as it is; the VNC ' +
      'address to any viewer that speaks websockify, with the password; a headless session has ' +
      'none. Reading it counts as use of the session.',
    // Connecting is control: a viewer may know that the session is there, not drive it.
    action: 'control',
    answer: { status: 200, schema: SessionAccess, description: 'Addresses and password' },
    refusals: ['SESSION_NOT_FOUND', 'SESSION_NOT_READY', 'SESSION_ENDED'],
    handle,
  };
}

function notActive({ id, status, endedReason }: SessionState) {
  if (status === 'active') return null;
  if (status === 'stopping' || isFinal(status))
    return reject('SESSION_ENDED', { session_id: id, status, ended_reason: endedReason });
  const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS };
  return reject('SESSION_NOT_READY', { session_id: id, status }, retry);
}

/** Once a minute at most; the decision itself sees to that. */
async function recordAccess(parts: ApiParts, request: FastifyRequest, caller: Caller, id: string) {
  const { organizationId } = caller;
  const command = { type: 'RecordAccess', via: 'api', now: parts.desk.now() } as const;
  const cause = causeOf(request, caller);
  const handled = await handleSession(parts.desk, { organizationId, id }, command, cause);
  if ('sequence' in handled && handled.isChanged)
    await untilReadable(parts.views, handled.sequence);
}

function presentAccess(session: SessionState, caller: Caller, { addresses }: ApiParts) {
  const { vncUrl, cdpUrl, vncPassword, viewerUrl } = connectionOf(session, caller, addresses);
  return {
    session_id: session.id,
    status: session.status,
    vnc_url: vncUrl,
    vnc_password: vncPassword,
    cdp_url: cdpUrl,
    viewer_url: viewerUrl,
    access_urls: { vnc_url: vncUrl, cdp_url: cdpUrl },
    expires_at: session.expiresAt,
  };
}
