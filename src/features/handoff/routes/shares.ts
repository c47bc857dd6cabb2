import type { SessionState } from '#events/session.ts';
import { isId } from '#events/subjects.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { newId } from '#src/kernel/ids.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { untilReadable } from '#src/commands/read-your-writes.ts';
import { isLiveShare } from '#src/kernel/domain/session/share.ts';
import { loadSession, requestMetadata, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { response, type ApiServer } from '#src/roles/api/http/route.ts';
import { SessionPath } from '#src/roles/api/schemas/requests.ts';
import {
  CreatedShare,
  CreateShareBody,
  durationIn,
  noScreen,
  presentShare,
  RevokedShare,
  ShareList,
  SharePath,
} from '#src/roles/api/schemas/steering.ts';

type Dependencies = Pick<ApiDependencies, 'context' | 'views' | 'addresses'>;

/** /api/sessions/{id}/shares: addresses of a session's screen for others. */
export function sessionShares(server: ApiServer, dependencies: Dependencies): void {
  createShare(server, dependencies);
  listShares(server, dependencies);
  revokeShare(server, dependencies);
}

function createShare(server: ApiServer, { context, views, addresses }: Dependencies): void {
  server.route({
    method: 'POST',
    url: '/api/sessions/:id/shares',
    schema: {
      operationId: 'createShare',
      tags: ['Shares'],
      summary: 'Share a session’s screen',
      description:
        'Makes an address for somebody who has no API key. It is refused with 410 once it has ' +
        'expired or is revoked, and its connections are closed; it ends with the session, too. ' +
        'Its page may be embedded by pages of the organization’s allowed origins. At most 16 are ' +
        'live at a time. An address ends with the API key that it was made with.',
      params: SessionPath,
      body: CreateShareBody,
      response: { 201: response('The address, shown this once', CreatedShare) },
    },
    config: {
      action: 'control',
      refusals: [
        'INVALID_DURATION',
        'SESSION_NOT_FOUND',
        'SESSION_NOT_READY',
        'SESSION_ENDED',
        'SHARE_LIMIT_EXCEEDED',
      ],
    },
    async handler(request, reply) {
      const { caller } = request;
      const { organizationId, userId, keyHash } = caller;
      const { id } = request.params;
      const { mode, expires_in: expiresIn } = request.body;
      const lifetimeMs = durationIn('expires_in', expiresIn);
      if (typeof lifetimeMs !== 'number') return sendRejection(reply, lifetimeMs);
      const session = await loadSession(context, organizationId, id);
      const refusal = notShared(id, session?.state ?? null);
      if (refusal !== null) return sendRejection(reply, refusal);
      const shareId = newId('shr');
      const asked = { shareId, mode, lifetimeMs, by: userId, now: context.now() } as const;
      const handled = await handleSessionCommand(
        context,
        { organizationId, id },
        { type: 'CreateShare', ...asked },
        requestMetadata(request, caller),
      );
      if (isRejection(handled)) return sendRejection(reply, handled);
      const { state } = handled;
      const share = state.shares?.find((one) => one.id === shareId);
      if (share === undefined || state.workload === null)
        throw new Error(`share ${shareId} was made, but there is none`);
      await untilReadable(views, handled.sequence);
      const password = addresses.vncPassword(state.workload.workloadId);
      // Of its maker's key: what somebody gave away ends with what allowed it.
      const url = addresses.viewerUrl(state, keyHash, password, { kind: 'share', id: shareId });
      return reply.code(201).send({ id: shareId, url, mode, expires_at: share.expiresAt });
    },
  });
}

/** Why no share is made: the address has a password, which a session without a browser has not. */
function notShared(id: string, session: SessionState | null): Rejection | null {
  if (session === null) return reject('SESSION_NOT_FOUND', { session_id: id });
  const { status } = session;
  if (status === 'creating' || status === 'queued')
    return reject('SESSION_NOT_READY', { session_id: id, status }, { retryAfterSeconds: 1 });
  return noScreen(session);
}

function listShares(server: ApiServer, { context }: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/shares',
    schema: {
      operationId: 'listShares',
      tags: ['Shares'],
      summary: 'The live shares of a session',
      description: 'Oldest first, without their addresses.',
      params: SessionPath,
      response: { 200: response('At most 16', ShareList) },
    },
    config: { action: 'read', refusals: ['SESSION_NOT_FOUND'] },
    async handler(request, reply) {
      const { id } = request.params;
      const session = await loadSession(context, request.caller.organizationId, id);
      if (session === null)
        return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const { status, shares = [] } = session.state;
      const now = context.now();
      const live = shares.filter((share) => status === 'active' && isLiveShare(share, now));
      return reply.send({ shares: live.map(presentShare) });
    },
  });
}

function revokeShare(server: ApiServer, { context, views }: Dependencies): void {
  server.route({
    method: 'DELETE',
    url: '/api/sessions/:id/shares/:share_id',
    schema: {
      operationId: 'revokeShare',
      tags: ['Shares'],
      summary: 'Take a share back',
      description: 'Within two seconds its address is refused, and its connections are closed.',
      params: SharePath,
      response: { 200: response('It is revoked', RevokedShare) },
    },
    config: {
      action: 'control',
      refusals: ['SESSION_NOT_FOUND', 'SHARE_NOT_FOUND', 'SESSION_ENDED'],
    },
    async handler(request, reply) {
      const { caller } = request;
      const { id, share_id: shareId } = request.params;
      const { organizationId, userId } = caller;
      if (!isId(id)) return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const handled = await handleSessionCommand(
        context,
        { organizationId, id },
        { type: 'RevokeShare', shareId, by: userId, now: context.now() },
        requestMetadata(request, caller),
      );
      if (isRejection(handled)) return sendRejection(reply, handled);
      await untilReadable(views, handled.sequence);
      return reply.send({ message: `Share ${shareId} has been revoked.`, id: shareId });
    },
  });
}
