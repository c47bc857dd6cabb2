/**
 * The client of the Browser Session Service: `createClient({ url, apiKey })`. It needs `fetch` and
 * nothing else, of Node or of a browser, and imports nothing of the service but types.
 */
import { followEvents, type EventsOptions, type ServiceEvent } from './follow-events.ts';
import { createRequester, type RequesterOptions } from './requester.ts';
import { createSessions, type Sessions } from './sessions.ts';

export { connect, type PlaywrightLike, type PuppeteerLike } from './connect.ts';
export { NoAnswer, ServiceError, type ErrorName } from './failures.ts';
export type { EventsOptions, ServiceEvent } from './follow-events.ts';
export type { CallOptions } from './requester.ts';
export type {
  CreateOptions,
  CreateSession,
  LiveSession,
  Session,
  SessionAccess,
  SessionExtended,
  SessionList,
  Sessions,
  SessionStopped,
  SessionSummary,
} from './sessions.ts';

export type ClientOptions = RequesterOptions;

export type Client = {
  sessions: Sessions;
  /**
   * The organization's events as they happen, in order, each once; from `from` on where it is
   * given. Goes on by itself over lost connections until the loop is left or the signal aborts.
   * @throws ServiceError where it is refused, NoAnswer after ten tries in a row without an answer
   */
  events(options?: EventsOptions): AsyncGenerator<ServiceEvent, void, void>;
};

/**
 * A client for one API key. Requests that fail on their way, or that the service asks to be sent
 * later, are sent again, three times by default; a create and an extension carry a key by which
 * the service knows the repeat.
 */
export function createClient(options: ClientOptions): Client {
  const requester = createRequester(options);
  return {
    sessions: createSessions(requester),
    events: (eventsOptions = {}) => followEvents(requester, { path: '/api/events' }, eventsOptions),
  };
}
