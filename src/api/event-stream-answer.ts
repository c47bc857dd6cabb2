import { Type } from 'typebox';
import type { ErrorName } from '../errors.ts';
import type { Route } from './http/route.ts';

/** A stream as it is documented. */
export const EVENT_STREAM_ANSWER: Route['answer'] = {
  status: 200,
  contentType: 'text/event-stream',
  schema: Type.String({
    description: 'Server-Sent Events',
    examples: [
      'id: 1234\nevent: session.activated\n' +
        'data: {"specversion":"1.0","id":"evt_…","type":"session.activated", …}\n\n: heartbeat\n\n',
    ],
  }),
  description: 'A stream that does not end by itself, but for a session’s after its last event',
};

/** Errors that a stream may be refused with beside those of every route. */
export const EVENT_STREAM_REFUSALS: ErrorName[] = ['STREAM_LIMIT_EXCEEDED'];
