import type { Static } from 'typebox';
import type * as schemas from '#src/roles/api/schemas/operator.ts';
import type { PoolQuery, PoolSeries, Queue } from './organization.ts';
import { queryOf, type CallOptions, type Requester } from './requester.ts';

export type OperatorOrganizations = Static<typeof schemas.OperatorOrganizations>;
export type OperatorServers = Static<typeof schemas.OperatorServers>;
export type DrainedServer = Static<typeof schemas.DrainedServer>;
export type PoolDecisions = Static<typeof schemas.PoolDecisions>;
export type OperatorEvents = Static<typeof schemas.OperatorEvents>;
export type ReadModels = Static<typeof schemas.ReadModels>;
export type Rebuild = Static<typeof schemas.Rebuild>;
export type DeadLetters = Static<typeof schemas.DeadLetters>;
export type DecidedDeadLetter = Static<typeof schemas.DecidedDeadLetter>;
export type Audits = Static<typeof schemas.Audits>;

/** `after` is `next` of the page before. */
type Pages = { limit?: number; after?: string };
/** Newest first: `before` is `next` of the page before; `as_of`: the state at that time. */
type PagesBack = { limit?: number; before?: string; as_of?: string };
export type EventsQuery = PagesBack & { kind?: string; organization?: string; id?: string };

/**
 * What operators see and decide; the client's `apiKey` is OPERATOR_TOKEN. Every method throws
 * ServiceError if the service refuses, and NoAnswer without an answer.
 */
export type Operator = {
  /** Resolves if the credential is an operator's. */
  get(options?: CallOptions): Promise<{ operator: true }>;
  organizations(
    query?: Pages & { q?: string },
    options?: CallOptions,
  ): Promise<OperatorOrganizations>;
  servers(options?: CallOptions): Promise<OperatorServers>;
  /** The server takes no new sessions. */
  drain(serverId: string, options?: CallOptions): Promise<DrainedServer>;
  undrain(serverId: string, options?: CallOptions): Promise<DrainedServer>;
  pool(query?: PoolQuery, options?: CallOptions): Promise<PoolSeries>;
  poolDecisions(
    query?: PagesBack & { server?: string },
    options?: CallOptions,
  ): Promise<PoolDecisions>;
  events(query?: EventsQuery, options?: CallOptions): Promise<OperatorEvents>;
  queue(options?: CallOptions): Promise<Queue>;
  readModels(options?: CallOptions): Promise<ReadModels>;
  /** It runs on; `readModels` has its progress. */
  rebuildReadModel(name: string, options?: CallOptions): Promise<Rebuild>;
  deadLetters(query?: Pages, options?: CallOptions): Promise<DeadLetters>;
  retryDeadLetter(id: string, options?: CallOptions): Promise<DecidedDeadLetter>;
  /** Leaves it out for good. */
  skipDeadLetter(
    id: string,
    asked: { reason: string; operator?: string },
    options?: CallOptions,
  ): Promise<DecidedDeadLetter>;
  /** What the last audit found, or how far it is. */
  audits(options?: CallOptions): Promise<Audits>;
  runAudit(options?: CallOptions): Promise<Audits>;
};

const PATH = '/api/operator';
/** Longer than the service takes to handle a dead letter once more. */
const RETRY_TIMEOUT_MS = 90_000;
const deadLetter = (id: string) => `/dead-letters/${encodeURIComponent(id)}`;
const server = (id: string) => `/servers/${encodeURIComponent(id)}`;

export function createOperator(requester: Requester): Operator {
  function read<Answer>(path: string, query: object = {}, options?: CallOptions) {
    const request = { method: 'GET', path: `${PATH}${path}`, query: queryOf(query) } as const;
    return requester.json<Answer>({ ...request, ...options });
  }
  function post<Answer>(path: string, options?: CallOptions, body?: object) {
    const request = { method: 'POST', path: `${PATH}${path}`, body } as const;
    return requester.json<Answer>({ ...request, ...options });
  }
  return {
    get: (options) => read('', {}, options),
    organizations: (query, options) => read('/organizations', query, options),
    servers: (options) => read('/servers', {}, options),
    drain: (id, options) => post(`${server(id)}/drain`, options),
    undrain: (id, options) => post(`${server(id)}/undrain`, options),
    pool: (query, options) => read('/pool', query, options),
    poolDecisions: (query, options) => read('/pool/decisions', query, options),
    events: (query, options) => read('/events', query, options),
    queue: (options) => read('/queue', {}, options),
    readModels: (options) => read('/read-models', {}, options),
    rebuildReadModel: (name, options) =>
      post(`/read-models/${encodeURIComponent(name)}/rebuild`, options),
    deadLetters: (query, options) => read('/dead-letters', query, options),
    retryDeadLetter: (id, options) =>
      post(`${deadLetter(id)}/retry`, { timeoutMs: RETRY_TIMEOUT_MS, ...options }),
    skipDeadLetter: (id, asked, options) => post(`${deadLetter(id)}/skip`, options, asked),
    audits: (options) => read('/audits', {}, options),
    runAudit: (options) => post('/audits', options),
  };
}
