import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type, type TSchema } from 'typebox';
import { isRejection, type ErrorName, type Rejection } from '#src/kernel/errors.ts';
import { requestMetadata } from '#src/roles/api/dependencies.ts';
import { goneSignal } from '#src/roles/api/http/client-gone.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { response, type ApiServer } from '#src/roles/api/http/route.ts';
import { spanOf } from '#src/roles/api/http/trace-requests.ts';
import { invalid } from '#src/roles/api/http/validation.ts';
import { PIXELS_MAX, type Captured } from '../captures.ts';
import { runOneCall, type Dependencies } from '../one-call.ts';
import { HTML_BYTES_MAX, OTHERS_BYTES_MAX, shown, tooLarge } from '../page-failure.ts';
import { sendBytes } from '../send-bytes.ts';
import { ContentBody, PageContent, PdfBody, ScreenshotBody, type PageAsked } from './page-call.ts';
import {
  readRequest,
  refuseUnknownExtensions,
  wantedProfile,
} from '#src/roles/api/sessions/requested-session.ts';

/** The session of a call whose process was killed (kill -9) ends by these. */
const DURATION = '2m';
const IDLE_TIMEOUT = '1m';
const LABEL = 'one-call';
/** Addresses in a session's description: without their query, which may hold secrets. */
const DESCRIBED_MAX = 200;
const TITLE_HEADER_MAX = 256;
const PROTOCOLS = ['http:', 'https:', 'data:'];

const refusals: ErrorName[] = [
  'UNKNOWN_EXTENSION',
  'INSUFFICIENT_CREDITS',
  'PROFILE_NOT_FOUND',
  'PROFILE_VERSION_NOT_FOUND',
  'PROFILE_IN_USE',
  'SESSION_ENDED',
  'RESULT_TOO_LARGE',
  'NAVIGATION_FAILED',
  'PAGE_REFUSED',
  'SESSION_LIMIT_EXCEEDED',
  'ONE_CALL_LIMIT_EXCEEDED',
  'BROWSER_UNREACHABLE',
  'PAGE_CRASHED',
  'NO_SERVERS_AVAILABLE',
  'EGRESS_UNAVAILABLE',
  'PAGE_TIMEOUT',
];

const HEADERS = {
  'X-Session-Id': Type.String({
    description: 'the session; an error that came after it was made has it, too',
  }),
  'X-Page-Url': Type.String({ description: 'address of the document, at most 2,048 characters' }),
  'X-Page-Title': Type.String({
    description: 'its title in percent-encoding (encodeURIComponent), at most 256 characters of it',
  }),
  'X-Page-Status': Type.String({
    description: 'its HTTP status; left out if it did not come by HTTP',
  }),
  'Server-Timing': Type.String({
    description:
      'milliseconds until it had its browser, for the page, and for the stop; `desc` says ' +
      'whether the browser had waited, `warm`, or was launched for it, `cold`',
  }),
};

const ABOUT =
  'A session whose whole life is this request: it is made, its page is opened, and it is stopped ' +
  'before the answer. It is billed by the minute as any session, has the label `one-call` and a ' +
  'history. A status of the page, as 404, is no error. It is not repeated for an Idempotency-Key. ';

type Route<Body extends TSchema> = {
  kind: PageAsked['kind'];
  operationId: string;
  summary: string;
  description: string;
  body: Body;
  answer: unknown;
};

/** POST /api/screenshot, /api/pdf, /api/content: a page in one call. */
export function oneCallRoutes(server: ApiServer, dependencies: Dependencies): void {
  const file = Type.String({ format: 'binary' });
  const headers = HEADERS;
  add(server, dependencies, {
    kind: 'screenshot',
    operationId: 'takeScreenshot',
    summary: 'A picture of a page',
    description: `${ABOUT}The answer is the picture, of at most 16 MiB.`,
    body: ScreenshotBody,
    answer: {
      description: 'The picture, in the `format` that was asked for',
      headers,
      content: Object.fromEntries(
        ['image/png', 'image/jpeg', 'image/webp'].map((type) => [type, { schema: file }]),
      ),
    },
  });
  add(server, dependencies, {
    kind: 'pdf',
    operationId: 'printPdf',
    summary: 'A page as a PDF',
    description: `${ABOUT}The answer is the PDF, of at most 16 MiB.`,
    body: PdfBody,
    answer: response('The PDF', file, { contentType: 'application/pdf', headers }),
  });
  add(server, dependencies, {
    kind: 'content',
    operationId: 'getPageContent',
    summary: 'The HTML of a page after its scripts ran',
    description: `${ABOUT}The document has at most 8 MiB as a text in this answer.`,
    body: ContentBody,
    answer: response('The document', PageContent, { headers }),
  });
}

function add<Body extends TSchema>(
  server: ApiServer,
  dependencies: Dependencies,
  { kind, operationId, summary, description, body, answer }: Route<Body>,
): void {
  server.route({
    method: 'POST',
    url: `/api/${kind}`,
    schema: {
      operationId,
      tags: ['Pages'],
      summary,
      description,
      body,
      response: { 200: answer },
    },
    config: { action: 'control', refusals, cost: costs.oneCall, door: { via: 'one-call' } },
    handler: (request, reply) =>
      answerCall(dependencies, request, reply, { kind, body: request.body } as PageAsked),
  });
}

async function answerCall(
  dependencies: Dependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  asked: PageAsked,
): Promise<FastifyReply> {
  const { caller } = request;
  const refused = refusalOf(asked);
  if (refused !== null) return sendRejection(reply, refused);
  const { session: options = {} } = asked.body;
  const body = {
    ...options,
    description: describe(asked),
    labels: { ...options.labels, [LABEL]: asked.kind },
    duration: DURATION,
    idle_timeout: IDLE_TIMEOUT,
  };
  const session = readRequest(body, caller, {
    key: null,
    now: dependencies.context.now(),
    maxLifetimeMs: dependencies.maxLifetimeMs,
    passwords: dependencies.proxyPasswords,
    isOwnHost: dependencies.ownAddresses.isOwnHost,
  });
  if (isRejection(session)) return sendRejection(reply, session);
  const { organizationId } = caller;
  const unknown = await refuseUnknownExtensions(dependencies.context, organizationId, session);
  if (unknown !== null) return sendRejection(reply, unknown);
  const place = dependencies.oneCalls.begin(organizationId);
  if (isRejection(place)) return sendRejection(reply, place);
  using held = place;
  const { sessionId, result, timing } = await runOneCall(dependencies, {
    asked,
    session,
    profile: wantedProfile(body),
    caller,
    metadata: requestMetadata(request, caller),
    admitted: request.admitted,
    gone: goneSignal(reply),
    stopping: held.stopping,
    span: spanOf(request),
  });
  if (result === null) return reply.hijack();
  if (sessionId !== null) void reply.header('x-session-id', sessionId);
  if (isRejection(result)) return sendRejection(reply, result);
  const { bytes, type } = bodyOf(asked, sessionId ?? '', result);
  // The page measures its HTML; a browser that was taken over may not, and an address may be long.
  if (asked.kind === 'content' && bytes.length > HTML_BYTES_MAX + OTHERS_BYTES_MAX) {
    const { rejection } = tooLarge(HTML_BYTES_MAX);
    const context = { session_id: sessionId, ...rejection.context };
    return sendRejection(reply, { ...rejection, context });
  }
  void reply.headers({ ...headersOf(result), 'server-timing': timing }).type(type);
  held.answered(bytes.length);
  await sendBytes(reply, bytes);
  return reply;
}

/** The rejection of what a schema cannot say; null: none. */
function refusalOf({ kind, body }: PageAsked): Rejection | null {
  const url = URL.parse(body.url);
  if (url === null || !PROTOCOLS.includes(url.protocol))
    return invalid({ field: 'url' }, 'url: must be an address of http:, https: or data:.');
  const { width = 0, height = 0, scale = 1 } = body.viewport ?? {};
  if (width * height * scale ** 2 > PIXELS_MAX)
    return invalid({ field: 'viewport' }, 'viewport: has more than 64 Mi pixels at its scale.');
  if (kind !== 'screenshot') return null;
  if (body.full_page === true && body.selector !== undefined)
    return invalid({ field: 'selector' }, 'selector: a picture is of the page or of an element.');
  if (body.quality !== undefined && (body.format ?? 'png') === 'png')
    return invalid({ field: 'quality' }, 'quality: a PNG has none.');
  return null;
}

function describe({ kind, body }: PageAsked): string {
  const { protocol, host, pathname } = new URL(body.url);
  const place = protocol === 'data:' ? 'data:' : `${protocol}//${host}${pathname}`;
  return `one call: ${kind} of ${place.slice(0, DESCRIBED_MAX)}`;
}

function headersOf({ url, title, status }: Captured): Record<string, string> {
  return {
    // An address is ASCII, whatever a browser that was taken over says.
    'x-page-url': shown(url).replaceAll(/[^\x21-\x7e]/gu, encodeURIComponent),
    'x-page-title': encodeURIComponent(title.slice(0, TITLE_HEADER_MAX).toWellFormed()),
    ...(status === null ? {} : { 'x-page-status': String(status) }),
    'x-content-type-options': 'nosniff',
  };
}

function bodyOf({ kind, body }: PageAsked, sessionId: string, captured: Captured) {
  const { bytes, url, status, title } = captured;
  if (kind === 'pdf') return { type: 'application/pdf', bytes };
  if (kind === 'screenshot') return { type: `image/${body.format ?? 'png'}`, bytes };
  const content = { session_id: sessionId, url, status, title, html: bytes.toString() };
  return {
    type: 'application/json; charset=utf-8',
    bytes: Buffer.from(JSON.stringify(content)),
  };
}
