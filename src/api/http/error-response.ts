import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import {
  errors,
  problemBody,
  reject,
  Unavailable,
  type ErrorName,
  type Rejected,
} from '#src/errors.ts';
import type { Log } from '#src/telemetry/logger.ts';

/** What the server is told of each refusal; set once, where it is built. */
type Counting = { countRefusal?: CountRefusal };
export type CountRefusal = (error: ErrorName) => void;

/** Answers with a refusal. */
export function refuse(reply: FastifyReply, rejected: Rejected): FastifyReply {
  (reply.server as Counting).countRefusal?.(rejected.rejected);
  if (rejected.retryAfterSeconds !== undefined)
    void reply.header('retry-after', String(rejected.retryAfterSeconds));
  if (rejected.rejected === 'UNAUTHORIZED') void reply.header('www-authenticate', 'Bearer');
  return reply
    .code(errors[rejected.rejected].status)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(problemBody(rejected)));
}

/** Seconds after which a part that is away may be back: it is restarted within 15 s. */
const RETRY_AFTER_SECONDS = 5;

/**
 * What was thrown, as the refusal a client is told. Unknown errors are bugs: logged whole, told as
 * INTERNAL.
 */
export function createErrorHandler(log: Log) {
  return function onError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
    const rejected = refusalFor(error);
    if (rejected.rejected === 'INTERNAL')
      log.error({ err: error, requestId: request.id, route: request.routeOptions.url }, 'bug');
    else if (error instanceof Unavailable)
      log.warn(
        { part: error.part, cause: String(error.cause), requestId: request.id },
        'unavailable',
      );
    refuse(reply, rejected);
  };
}

function refusalFor(error: FastifyError): Rejected {
  if (error instanceof Unavailable)
    return reject('UNAVAILABLE', { part: error.part }, { retryAfterSeconds: RETRY_AFTER_SECONDS });
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return reject('PAYLOAD_TOO_LARGE');
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return reject('UNSUPPORTED_MEDIA_TYPE');
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
      return invalid('The request body is not valid JSON.');
    default:
      // What Fastify itself refuses is the client's doing; the message is its own, not ours.
      return error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500
        ? invalid(`${error.message.replace(/\.$/, '')}.`)
        : reject('INTERNAL');
  }
}

function invalid(message: string): Rejected {
  return reject('INVALID_REQUEST', {}, { message });
}
