import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { mayDo } from '#src/kernel/domain/organization/roles.ts';
import { answerHeaders } from '../http/admission.ts';
import { bearerOf, type Caller } from '../auth/authenticate.ts';
import type { EventQuery } from './event-query.ts';
import type { EventFeed } from './event-feed.ts';
import { openSink } from './event-sink.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { sendRejection } from '../http/error-response.ts';
import { response } from '../http/route.ts';

/** By then other streams may have ended, or a restarted process is back. */
const RETRY_AFTER_SECONDS = 5;

type Wanted = { begin: number | 'since' | 'now'; sessionId: string | null };

/** The response of a stream in the document. */
export const EVENT_STREAM_RESPONSE = response(
  'A stream that does not end by itself, but for a session’s after its last event',
  Type.String({
    description: 'Server-Sent Events',
    examples: [
      'id: 1234\nevent: session.activated\n' +
        'data: {"specversion":"1.0","id":"evt_…","type":"session.activated", …}\n\n: heartbeat\n',
    ],
  }),
  {
    contentType: 'text/event-stream',
    headers: {
      'Last-Event-ID': Type.Integer({
        description: 'where the stream begins: the header of a reconnect before the first event',
      }),
    },
  },
);

/** Answers with the stream, or with the rejection. */
export async function answerWithEvents(
  dependencies: Pick<ApiDependencies, 'feed' | 'authenticate'>,
  request: FastifyRequest,
  reply: FastifyReply,
  { asked, begin, sessionId }: Pick<EventQuery, 'asked'> & Wanted,
): Promise<FastifyReply> {
  // A HEAD is answered like the GET, without a body.
  if (request.method === 'HEAD') return reply.headers(STREAM_HEADERS).send();
  const { caller } = request;
  const { organizationId } = caller;
  const refusal = await dependencies.feed.open({
    subscription: { ...asked, organizationId, sessionId },
    begin,
    isAllowed: () => isStillAllowed(dependencies, request, caller),
    openSink(after) {
      reply.hijack();
      const position = { 'last-event-id': after };
      return openSink(reply.raw, { ...answerHeaders(request), ...STREAM_HEADERS, ...position });
    },
  });
  return refusal === null
    ? reply
    : sendRejection(reply, problemFor(refusal, begin, dependencies.feed));
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // No transformation, and no buffering by a proxy.
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};

function problemFor(
  refusal: 'organization-full' | 'process-full' | 'ending' | 'ahead',
  position: unknown,
  { clientsPerOrganizationMax: limit }: EventFeed,
): Rejection {
  const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS };
  const part = { part: 'event-feed' };
  switch (refusal) {
    case 'organization-full':
      return reject('STREAM_LIMIT_EXCEEDED', { limit }, retry);
    case 'process-full':
      return reject('UNAVAILABLE', part, {
        ...retry,
        message: 'This server has as many event streams open as it may; try again.',
      });
    case 'ending':
      return reject('UNAVAILABLE', part, { retryAfterSeconds: 1 });
    case 'ahead':
      return reject(
        'INVALID_REQUEST',
        { field: 'Last-Event-ID', position },
        { message: 'The event log has not reached this position.' },
      );
  }
}

/** The stream stays open while its credential is valid for the same organization. */
async function isStillAllowed(
  { authenticate }: Pick<ApiDependencies, 'authenticate'>,
  request: FastifyRequest,
  { organizationId }: Caller,
): Promise<boolean> {
  const credential = bearerOf(request.headers.authorization);
  const caller = credential === null ? null : await authenticate(credential);
  return caller !== null && caller.organizationId === organizationId && mayDo(caller.role, 'read');
}
