import { Type } from 'typebox';
import { isId } from '#events/subjects.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { parseSegmentKey, recordingPrefix } from '#src/features/recordings/keys.ts';
import { readRecordingIndex } from '#src/features/recordings/recording-index.ts';
import { loadSession, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { sendPaced } from '#src/roles/api/files/paced-body.ts';
import { goneSignal } from '#src/roles/api/http/client-gone.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { emptyResponse, response, type ApiServer } from '#src/roles/api/http/route.ts';
import { presentRecording } from './present-recording.ts';
import { Recording, SegmentPath } from './schemas.ts';
import { SessionPath } from '#src/roles/api/schemas/requests.ts';

type Dependencies = Pick<ApiDependencies, 'context' | 'objects' | 'transfers'>;

/**
 * GET /api/sessions/{id}/recording: what was recorded of a session's screen, and when; and
 * …/recording/{segment}: the bytes of a part. Neither is a use of the session.
 */
export function sessionRecording(server: ApiServer, dependencies: Dependencies): void {
  getRecording(server, dependencies);
  getSegment(server, dependencies);
}

function getRecording(server: ApiServer, { context, objects }: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/recording',
    schema: {
      operationId: 'getSessionRecording',
      tags: ['Recordings'],
      summary: 'What was recorded of a session’s screen',
      description:
        'The index of the recording of a session that was created with `record: true`: its ' +
        'segments, the gaps between them and what happened meanwhile. While the session is ' +
        'active it grows, some seconds behind. It can be read until `RECORDINGS_RETAIN` after ' +
        'the session’s end. This request does not count as use of the session.',
      params: SessionPath,
      response: { 200: response('The index', Recording) },
    },
    config: {
      action: 'read',
      refusals: ['SESSION_NOT_FOUND', 'RECORDING_NOT_FOUND'],
      cost: costs.getRecording,
    },
    async handler(request, reply) {
      const { id } = request.params;
      const { organizationId } = request.caller;
      const session = await loadSession(context, organizationId, id);
      if (session === null)
        return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const { record, endedAt } = session.state;
      if (record !== true) return sendRejection(reply, notFound(id));
      const ref = { kind: 'session', organizationId, id } as const;
      const index = await readRecordingIndex(context.eventStore, objects, ref);
      const isRemoved = index.wasStored && index.segments.length === 0 && endedAt !== null;
      if (isRemoved) return sendRejection(reply, notFound(id));
      return reply.send(presentRecording(id, index, endedAt));
    },
  });
}

function getSegment(server: ApiServer, { context, objects, transfers }: Dependencies): void {
  /** The session is only read for a segment that is not there: a player reads many that are. */
  async function missing(organizationId: string, id: string) {
    const session = await loadSession(context, organizationId, id);
    return session === null ? reject('SESSION_NOT_FOUND', { session_id: id }) : notFound(id);
  }
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/recording/:segment',
    schema: {
      operationId: 'getRecordingSegment',
      tags: ['Recordings'],
      summary: 'A segment of a recording',
      description:
        'RFB messages with their times, deflated with zlib: src/features/recordings/README.md ' +
        'says how. A segment never changes. This request does not count as use of the session.',
      params: SegmentPath,
      response: {
        200: response(
          'The segment',
          Type.String({ contentMediaType: 'application/octet-stream' }),
          {
            contentType: 'application/octet-stream',
            headers: { ETag: Type.String({ description: 'the SHA-256 of its bytes' }) },
          },
        ),
        304: emptyResponse('The client has it: `If-None-Match` names its `ETag`'),
      },
    },
    config: {
      action: 'read',
      refusals: ['SESSION_NOT_FOUND', 'RECORDING_NOT_FOUND', 'TRANSFER_LIMIT_EXCEEDED'],
    },
    async handler(request, reply) {
      const { id, segment } = request.params;
      const { organizationId } = request.caller;
      const key = isId(id) ? `${recordingPrefix({ organizationId, id })}${segment}` : '';
      const found = parseSegmentKey(key) === null ? null : await objects.head(key);
      if (found === null) return sendRejection(reply, await missing(organizationId, id));
      const etag = `"${found.sha256}"`;
      void reply.headers({
        etag,
        'cache-control': 'private, max-age=86400, immutable',
        'x-content-type-options': 'nosniff',
      });
      const known = request.headers['if-none-match'] ?? '';
      if (known.includes(etag)) return reply.code(304).send();
      const place = await transfers.begin('download', organizationId);
      if (isRejection(place)) return sendRejection(reply, place);
      const getting = objects.get(key, undefined, { signal: goneSignal(reply) });
      const got = await getting.catch((error: unknown) => {
        place[Symbol.dispose]();
        throw error;
      });
      if (got !== null)
        return sendPaced(
          reply.type('application/octet-stream').header('content-length', got.object.bytes),
          got.body,
          place,
        );
      place[Symbol.dispose]();
      return sendRejection(reply, await missing(organizationId, id));
    },
  });
}

function notFound(id: string) {
  return reject('RECORDING_NOT_FOUND', { session_id: id });
}
