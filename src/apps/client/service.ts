import type { Static } from 'typebox';
import type * as schemas from '#src/roles/api/schemas/sessions.ts';
import { queryOf, type CallOptions, type Requester } from './requester.ts';

/** Capacity and load: the browsers by state, and the organization's active sessions. */
export type ServiceStatus = Static<typeof schemas.ServiceStatus>;
export type Health = Static<typeof schemas.Health>;
export type Readiness = Static<typeof schemas.Readiness>;

/**
 * The service itself. Every method throws ServiceError if the service refuses, and NoAnswer
 * without an answer.
 */
export type Service = {
  /** @param query `as_of`: the state at that time, as RFC 3339 with milliseconds */
  status(query?: { as_of?: string }, options?: CallOptions): Promise<ServiceStatus>;
  health(options?: CallOptions): Promise<Health>;
  /** @throws ServiceError with UNAVAILABLE, which is retried, while parts are missing */
  ready(options?: CallOptions): Promise<Readiness>;
  /** Prometheus' text; the client's `apiKey` is the token of METRICS_TOKEN where one is set. */
  metrics(options?: CallOptions): Promise<string>;
  /** The API as an OpenAPI 3.1 document. */
  openApi(options?: CallOptions): Promise<object>;
  /** The events as an AsyncAPI 3 document. */
  asyncApi(options?: CallOptions): Promise<object>;
  /** The HTML page that shows the API to people. */
  docs(options?: CallOptions): Promise<string>;
  /** The HTML page that shows the events to people. */
  eventDocs(options?: CallOptions): Promise<string>;
  /** The licences of what the service is distributed with. */
  licenses(options?: CallOptions): Promise<string>;
};

export function createService(requester: Requester): Service {
  const json = <Answer>(path: string, options?: CallOptions) =>
    requester.json<Answer>({ method: 'GET', path, ...options });
  const text = (path: string, options?: CallOptions) =>
    requester.read({ method: 'GET', path, ...options }, (response) => response.text());
  return {
    status: (query = {}, options) =>
      requester.json({ method: 'GET', path: '/api/status', query: queryOf(query), ...options }),
    health: (options) => json('/api/health', options),
    ready: (options) => json('/api/ready', options),
    metrics: (options) => text('/metrics', options),
    openApi: (options) => json('/api/openapi.json', options),
    asyncApi: (options) => json('/api/asyncapi.json', options),
    docs: (options) => text('/docs', options),
    eventDocs: (options) => text('/docs/events', options),
    licenses: (options) => text('/licenses', options),
  };
}
