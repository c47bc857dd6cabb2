import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import {
  ArchiveDamaged,
  errors,
  problemBody,
  reject,
  Unavailable,
  WrittenByNewer,
  type ErrorName,
  type Rejection,
} from '#src/kernel/errors.ts';
import { ObjectStoreFull, OrganizationStoreFull } from '#src/kernel/objects/object-store.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { storeFullRejection } from './store-full.ts';
import { dialectOf } from './dialect.ts';
import { Unreadable } from './body-coding.ts';
import { invalid, validationRejection } from './validation.ts';

/** Called with each refusal; set once, when the server is built. */
type Counting = { countRefusal?: CountRefusal };
export type CountRefusal = (error: ErrorName) => void;

/** Answers with a rejection. */
export function sendRejection(reply: FastifyReply, rejection: Rejection): FastifyReply {
  (reply.server as Counting).countRefusal?.(rejection.code);
  if (rejection.retryAfterSeconds !== undefined)
    void reply.header('retry-after', String(rejection.retryAfterSeconds));
  const dialect = dialectOf(reply.request);
  if (dialect !== null) {
    const { status, body, headers = {} } = dialect.answer(rejection);
    return reply
      .headers(headers)
      .code(status)
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(body));
  }
  if (rejection.code === 'UNAUTHORIZED') void reply.header('www-authenticate', 'Bearer');
  return reply
    .code(errors[rejection.code].status)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(problemBody(rejection)));
}

/** Seconds after which an unavailable dependency may be back: it is restarted within 15 s. */
const RETRY_AFTER_SECONDS = 5;

/**
 * Answers a thrown error or a request that does not fit its route's schema. An unknown error is a
 * bug: it is logged in full and answered as INTERNAL. The rate limit's rejection comes before any
 * other, which matters where a route awaits it in its handler.
 */
export function createErrorHandler(log: Logger) {
  return async function onError(
    error: FastifyError,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const rejection = validationRejection(error, request) ?? rejectionFor(error);
    if (rejection.code === 'INTERNAL')
      log.error(
        { err: error, requestId: request.id, route: request.routeOptions.url },
        'unexpected error',
      );
    else if (error instanceof Unavailable && !(error instanceof OrganizationStoreFull))
      log.warn(
        { part: error.part, cause: String(error.cause), requestId: request.id },
        'a part of the service is unavailable',
      );
    return sendRejection(reply, (await request.admitted) ?? rejection);
  };
}

function rejectionFor(error: FastifyError): Rejection {
  if (error instanceof WrittenByNewer)
    return reject(
      'UNAVAILABLE',
      { part: error.part },
      {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
        message: 'The service is being upgraded, and this process cannot read this yet; try again.',
      },
    );
  if (error instanceof ObjectStoreFull) return storeFullRejection(error);
  if (error instanceof Unreadable) return error.rejection;
  if (error instanceof ArchiveDamaged)
    return reject(
      'UNAVAILABLE',
      { part: error.part, file: error.file },
      {
        message:
          `The archive’s file ${error.file} is missing or is not what was sealed, so nothing of ` +
          'it is answered; the operator of the service has to put it back.',
      },
    );
  if (error instanceof Unavailable)
    return reject('UNAVAILABLE', { part: error.part }, { retryAfterSeconds: RETRY_AFTER_SECONDS });
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return reject('PAYLOAD_TOO_LARGE');
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return reject('UNSUPPORTED_MEDIA_TYPE');
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
      return invalid({}, 'The request body is not valid JSON.');
    default:
      // Fastify's own refusals are client errors; the message is Fastify's.
      return error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500
        ? invalid({}, `${error.message.replace(/\.$/, '')}.`)
        : reject('INTERNAL');
  }
}
