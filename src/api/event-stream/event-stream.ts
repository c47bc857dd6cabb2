import type { FastifyReply, FastifyRequest } from 'fastify';
import { reject, type Rejected } from '#src/errors.ts';
import { mayDo } from '#src/domain/organization/roles.ts';
import { answerHeaders } from '../http/admission.ts';
import { bearerOf, type Caller } from '../auth/authenticate.ts';
import type { EventQuery } from './event-query.ts';
import { openSink, type Sink } from './event-sink.ts';
import type { ApiParts } from '../dependencies.ts';
import { refuse } from '../http/error-response.ts';

/** Port: events as Server-Sent Events, backlog and live. */
export type EventFeed = {
  /** Streams of one organization that this process takes. */
  readonly clientsPerOrganizationMax: number;
  /**
   * Opens a stream into the sink; null where it has begun. `since` begins with what was decided at
   * `asked.since`, `now` with what is appended next, a sequence behind it.
   * @throws Unavailable where the log does not answer
   */
  open(opening: {
    asked: EventQuery['asked'] & { organizationId: string; sessionId: string | null };
    begin: number | 'since' | 'now';
    isAllowed: () => boolean | Promise<boolean>;
    openSink: () => Sink;
  }): Promise<'organization-full' | 'process-full' | 'ending' | 'ahead' | null>;
};

/** Streams end by and by; a restart takes seconds. */
const RETRY_AFTER_SECONDS = 5;

type Wanted = { begin: number | 'since' | 'now'; sessionId: string | null };

/** Answers with the stream, or with why there is none. */
export async function answerWithEvents(
  parts: Pick<ApiParts, 'feed' | 'authenticate'>,
  { request, reply, caller }: { request: FastifyRequest; reply: FastifyReply; caller: Caller },
  { asked, begin, sessionId }: Pick<EventQuery, 'asked'> & Wanted,
): Promise<FastifyReply> {
  // A HEAD is answered as the GET would be, and nothing follows.
  if (request.method === 'HEAD') return reply.headers(STREAM_HEADERS).send();
  const { organizationId } = caller;
  const refusal = await parts.feed.open({
    asked: { ...asked, organizationId, sessionId },
    begin,
    isAllowed: () => isStillAllowed(parts, request, caller),
    openSink() {
      reply.hijack();
      return openSink(reply.raw, { ...answerHeaders(request), ...STREAM_HEADERS });
    },
  });
  return refusal === null ? reply : refuse(reply, problemFor(refusal, begin, parts.feed));
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // No transformation, and no proxy's buffer in between.
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};

function problemFor(
  refusal: 'organization-full' | 'process-full' | 'ending' | 'ahead',
  position: unknown,
  { clientsPerOrganizationMax: limit }: EventFeed,
): Rejected {
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

/** The same credential has to open the same organization, for as long as the stream is open. */
async function isStillAllowed(
  { authenticate }: Pick<ApiParts, 'authenticate'>,
  request: FastifyRequest,
  { organizationId }: Caller,
): Promise<boolean> {
  const credential = bearerOf(request.headers.authorization);
  const caller = credential === null ? null : await authenticate(credential);
  return caller !== null && caller.organizationId === organizationId && mayDo(caller.role, 'read');
}
