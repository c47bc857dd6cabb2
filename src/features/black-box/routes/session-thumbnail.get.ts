import { Type } from 'typebox';
import { buffer } from 'node:stream/consumers';
import type { SessionState } from '#events/session.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { thumbnailKey } from '#src/kernel/domain/session/thumbnail.ts';
import { reject } from '#src/kernel/errors.ts';
import { loadSession, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { isKnown } from '#src/roles/api/files/byte-range.ts';
import { goneSignal } from '#src/roles/api/http/client-gone.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { emptyResponse, response, type ApiServer } from '#src/roles/api/http/route.ts';
import { SessionPath } from '#src/roles/api/schemas/requests.ts';

const HEADERS = {
  ETag: Type.String({ description: 'for `If-None-Match`: names the picture' }),
  'Cache-Control': Type.String({ description: '`private, no-cache`' }),
};

/**
 * GET /api/sessions/{id}/thumbnail: what the session's browser showed last, once it has ended. Who
 * may read the session may read it.
 */
export function sessionThumbnail(
  server: ApiServer,
  { context, objects, filesRetainMs }: ApiDependencies,
): void {
  /** The sweep of the object store removes it some time later. */
  function isKept({ status, endedAt, createdAt }: SessionState): boolean {
    if (!isFinal(status)) return false;
    return context.now() <= Date.parse(endedAt ?? createdAt) + filesRetainMs;
  }
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/thumbnail',
    schema: {
      operationId: 'getSessionThumbnail',
      tags: ['Sessions'],
      summary: 'What an ended session’s browser showed last',
      description:
        'A JPEG of the page that was visible, at most 640 pixels wide. It can be read until ' +
        '`FILES_RETAIN` after the end. Where the browser ended by itself it is up to a minute ' +
        'older than the end. There is none with `black_box: false` at create, of a session that ' +
        'opened no page, and of the time in which a person has a hand-off.',
      params: SessionPath,
      response: {
        200: response('The picture', Type.String({ contentMediaType: 'image/jpeg' }), {
          contentType: 'image/jpeg',
          headers: HEADERS,
        }),
        304: emptyResponse('The client has it: `If-None-Match` names its `ETag`'),
      },
    },
    config: {
      action: 'read',
      refusals: ['SESSION_NOT_FOUND', 'THUMBNAIL_NOT_FOUND'],
      cost: costs.getThumbnail,
    },
    async handler(request, reply) {
      const { id } = request.params;
      const { organizationId } = request.caller;
      const session = await loadSession(context, organizationId, id);
      if (session === null)
        return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const missing = reject('THUMBNAIL_NOT_FOUND', { session_id: id });
      if (!isKept(session.state)) return sendRejection(reply, missing);
      const key = thumbnailKey({ organizationId, id });
      const found = await objects.head(key);
      if (found === null) return sendRejection(reply, missing);
      const etag = `"${found.sha256}"`;
      void reply.headers({
        etag,
        'cache-control': 'private, no-cache',
        'x-content-type-options': 'nosniff',
      });
      if (isKnown(etag, request.headers['if-none-match'])) return reply.code(304).send();
      const got = await objects.get(key, undefined, { signal: goneSignal(reply) });
      if (got === null) return sendRejection(reply, missing);
      void reply.header('content-length', got.object.bytes).type('image/jpeg');
      // It is small; as a whole it is bounded for clients that do not read.
      return reply.send(await buffer(got.body));
    },
  });
}
