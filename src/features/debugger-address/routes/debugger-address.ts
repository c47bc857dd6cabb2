import type { SessionState } from '#events/session.ts';
import { isRejection, reject, type ErrorName, type Rejection } from '#src/kernel/errors.ts';
import { loadSession, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { response, type ApiServer } from '#src/roles/api/http/route.ts';
import { SessionPath } from '#src/roles/api/schemas/requests.ts';
import type { DebuggerAddresses } from '../debugger-addresses.ts';
import { DebuggerAddress, DebuggerAddressClosed } from './schemas.ts';
import { notActive } from '#src/roles/api/sessions/current-session.ts';

type Dependencies = Pick<ApiDependencies, 'context'> & { debuggerAddresses: DebuggerAddresses };

const REFUSALS: ErrorName[] = [
  'SESSION_NOT_FOUND',
  'SESSION_NOT_READY',
  'SESSION_ENDED',
  'DEBUGGER_PORTS_OFF',
];

/** /api/sessions/{id}/debugger-address: a port of the session's own. */
export function debuggerAddress(server: ApiServer, dependencies: Dependencies): void {
  openAddress(server, dependencies);
  closeAddress(server, dependencies);
}

function openAddress(server: ApiServer, { context, debuggerAddresses }: Dependencies): void {
  server.route({
    method: 'POST',
    url: '/api/sessions/:id/debugger-address',
    schema: {
      operationId: 'openDebuggerAddress',
      tags: ['Sessions'],
      summary: 'Give a session a port of its own',
      description:
        'For clients that take a host and a port alone, as `debuggerAddress` of chromedriver. ' +
        'Whatever reaches the port drives the browser, without a ticket; pages of browsers are ' +
        'refused. The port is the caller’s: asked again, it is the same, and it closes with the ' +
        'session, with the caller’s API key, when the addresses are rotated, and when the ' +
        'gateway restarts: then ask again. Only where the operator has set `DEBUGGER_PORTS`.',
      params: SessionPath,
      response: { 200: response('The port', DebuggerAddress) },
    },
    config: { action: 'control', refusals: [...REFUSALS, 'DEBUGGER_PORT_LIMIT_EXCEEDED'] },
    async handler(request, reply) {
      const { caller } = request;
      const session = await activeSession(context, caller.organizationId, request.params.id);
      if (isRejection(session)) return sendRejection(reply, session);
      const opened = await debuggerAddresses.open(session, caller.keyHash);
      if (isRejection(opened)) return sendRejection(reply, opened);
      return reply.send({
        session_id: session.id,
        debugger_address: opened.address,
        expires_at: session.expiresAt,
      });
    },
  });
}

function closeAddress(server: ApiServer, { context, debuggerAddresses }: Dependencies): void {
  server.route({
    method: 'DELETE',
    url: '/api/sessions/:id/debugger-address',
    schema: {
      operationId: 'closeDebuggerAddress',
      tags: ['Sessions'],
      summary: 'Close the ports of a session',
      description:
        'Closes every port of the session, of other callers too, and ends the connections that ' +
        'came by them. The session goes on.',
      params: SessionPath,
      response: { 200: response('How many were closed', DebuggerAddressClosed) },
    },
    config: { action: 'control', refusals: REFUSALS },
    async handler(request, reply) {
      const { caller } = request;
      const session = await activeSession(context, caller.organizationId, request.params.id);
      if (isRejection(session)) return sendRejection(reply, session);
      const closed = await debuggerAddresses.close(session, caller.keyHash);
      if (isRejection(closed)) return sendRejection(reply, closed);
      return reply.send({ session_id: session.id, closed: closed.closed });
    },
  });
}

async function activeSession(
  context: Dependencies['context'],
  organizationId: string,
  id: string,
): Promise<SessionState | Rejection> {
  const session = await loadSession(context, organizationId, id);
  if (session === null) return reject('SESSION_NOT_FOUND', { session_id: id });
  return notActive(session.state) ?? session.state;
}
