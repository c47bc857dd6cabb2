import { Type } from 'typebox';
import type { SessionState, SessionWorkload } from '#events/session.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { ScreenshotAnswer } from '#src/kernel/messaging/screenshots.ts';
import { loadSession, type ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { emptyResponse, response, type ApiServer } from '../../http/route.ts';
import { invalid } from '../../http/validation.ts';
import { SessionPath } from '../../schemas/requests.ts';
import { currentSessionView, notActive } from '../../sessions/current-session.ts';

const WIDTH_MIN = 64;
/** The widest viewport. */
const WIDTH_MAX = 3_840;
const WIDTH_DEFAULT = 1_280;
/** Etags of `If-None-Match` that are compared; a client has one. */
const KNOWN_MAX = 8;
/** Seconds after which a server may be back, or another one have taken its place. */
const SERVER_SECONDS = 5;

export const ScreenshotQuery = Type.Object(
  {
    max_width: Type.Optional(
      Type.Integer({
        minimum: WIDTH_MIN,
        maximum: WIDTH_MAX,
        default: WIDTH_DEFAULT,
        description: `the picture's greatest width in pixels, ${WIDTH_MIN} to ${WIDTH_MAX}`,
        refusal: (width: unknown) =>
          invalid(
            { max_width: width },
            `max_width must be a whole number from ${WIDTH_MIN} to ${WIDTH_MAX}.`,
          ),
      }),
    ),
  },
  { additionalProperties: false },
);

const HEADERS = {
  ETag: Type.String({ description: 'for `If-None-Match`: names the picture' }),
  'Cache-Control': Type.String({ description: '`private, no-cache`' }),
};

/**
 * GET /api/sessions/{id}/screenshot: what the session's browser shows, asked of the server that
 * runs it. It is no use of the session: a caller that only looks does not keep it alive, and no
 * event is appended.
 */
export function sessionScreenshot(server: ApiServer, dependencies: ApiDependencies): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/screenshot',
    schema: {
      operationId: 'getSessionScreenshot',
      tags: ['Sessions'],
      summary: 'What the session’s browser shows',
      description:
        'A JPEG of the page that is visible, no wider than `max_width` and than the page: some ' +
        'widths are made, and the next smaller one is answered. It is made at most once a second ' +
        'for all who ask. This request does not count as use of the session.',
      params: SessionPath,
      querystring: ScreenshotQuery,
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
      refusals: ['SESSION_NOT_FOUND', 'SESSION_NOT_READY', 'SESSION_ENDED', 'BROWSER_UNREACHABLE'],
      cost: costs.getScreenshot,
    },
    async handler(request, reply) {
      const { id } = request.params;
      const { organizationId } = request.caller;
      const view = await currentSessionView(dependencies, organizationId, id);
      if (view === null)
        return sendRejection(reply, reject('SESSION_NOT_FOUND', { session_id: id }));
      const state = JSON.parse(view) as SessionState;
      const refusal = notActive(state);
      if (refusal !== null || state.workload === null)
        return sendRejection(reply, refusal ?? reject('BROWSER_UNREACHABLE', {}, retryAfter(0)));
      const known = etagsOf(request.headers['if-none-match']);
      const asked = { maxWidth: request.query.max_width ?? WIDTH_DEFAULT, known };
      const answer = await ask(dependencies, state, state.workload, asked);
      if (answer.kind !== 'image' && answer.kind !== 'unchanged')
        return sendRejection(reply, await refusalOf(dependencies, state, answer));
      void reply.headers({
        etag: `"${answer.etag}"`,
        // Kept, but asked for each time; by no proxy.
        'cache-control': 'private, no-cache',
        'x-content-type-options': 'nosniff',
      });
      if (answer.kind === 'unchanged' || known.includes('*')) return reply.code(304).send();
      return reply.type('image/jpeg').send(Buffer.from(answer.bytes));
    },
  });
}

function ask(
  { serverQuestions }: ApiDependencies,
  { organizationId, id: sessionId }: SessionState,
  { serverId, workloadId }: SessionWorkload,
  asked: { maxWidth: number; known: string[] },
): Promise<ScreenshotAnswer> {
  const question = { organizationId, sessionId, workloadId, ...asked };
  return serverQuestions.ask(serverId, 'screenshot', question);
}

/** The etags of the header, without quotes. */
function etagsOf(sent: string | undefined): string[] {
  const tags = (sent ?? '').split(',').map((tag) => tag.trim().replace(/^(?:W\/)?"(.*)"$/, '$1'));
  return tags.filter((tag) => /^(?:\*|[\w-]{1,64})$/.test(tag)).slice(0, KNOWN_MAX);
}

type NoPicture = Exclude<ScreenshotAnswer, { kind: 'image' | 'unchanged' }>;

async function refusalOf(
  { context }: ApiDependencies,
  { organizationId, id }: SessionState,
  answer: NoPicture,
): Promise<Rejection> {
  const part = { part: 'browser-server' };
  switch (answer.kind) {
    case 'no-picture':
      return reject('BROWSER_UNREACHABLE', {}, retryAfter(answer.retryAfterMs));
    case 'busy':
      return reject('UNAVAILABLE', part, {
        ...retryAfter(answer.retryAfterMs),
        message: 'The session’s server makes as many screenshots as it can; try again.',
      });
    case 'not-here': {
      // The session may have ended a moment ago.
      const session = await loadSession(context, organizationId, id);
      const refusal = session === null ? null : notActive(session.state);
      return refusal ?? reject('UNAVAILABLE', part, { retryAfterSeconds: 1 });
    }
    case 'no-server':
      return reject('UNAVAILABLE', part, {
        retryAfterSeconds: SERVER_SECONDS,
        message: 'The session’s server does not answer; try again.',
      });
    default:
      return answer satisfies never;
  }
}

function retryAfter(ms: number): { retryAfterSeconds: number } {
  return { retryAfterSeconds: Math.max(1, Math.ceil(ms / 1000)) };
}
