import type { Static } from 'typebox';
import type * as operated from '#src/roles/api/schemas/operator.ts';
import type * as schemas from '#src/roles/api/schemas/organization.ts';
import type * as billed from '#src/roles/api/schemas/usage.ts';
import { saveTo, streamOf } from './file-content.ts';
import type { FilesZip } from './files.ts';
import type { Handoff } from './handoff.ts';
import { queryOf, type CallOptions, type Requester, type StreamOptions } from './requester.ts';
import { listOpenHandoffs } from './steering.ts';

/** The caller's organization: its tier, limits and credits. */
export type Organization = Static<typeof schemas.Organization>;
/** An API key without its secret. */
export type Key = Static<typeof schemas.KeyList>['keys'][number];
/** `api_key` is the secret, which is shown this once. */
export type IssuedKey = Static<typeof schemas.IssuedKey>;
export type IssueKey = Static<typeof schemas.IssueKeyBody>;
export type RevokedKey = Static<typeof schemas.RevokedKey>;
/** A page of what was billed, one line for each session. */
export type Usage = Static<typeof billed.Usage>;
/** Times as RFC 3339 or a date in UTC; `after` is `pagination.next` of the page before. */
export type UsageQuery = { from?: string; to?: string; limit?: number; after?: string };
/** Times as RFC 3339 with milliseconds; `step` in seconds. */
export type PoolQuery = { from?: string; to?: string; step?: number };
/** Numbers of browsers by state, point by point. */
export type PoolSeries = Static<typeof operated.PoolSeries>;
/** Sessions that wait for a browser, the next one first. */
export type Queue = Static<typeof operated.Queue>;

/**
 * What belongs to the API key's organization. Every method throws ServiceError if the service
 * refuses, and NoAnswer without an answer.
 */
export type OrganizationCalls = {
  get(options?: CallOptions): Promise<Organization>;
  /** Replaces the origins of pages that may embed shares. Resolves with the new list. */
  allowOrigins(origins: readonly string[], options?: CallOptions): Promise<string[]>;
  listKeys(options?: CallOptions): Promise<Key[]>;
  /** Without an answer it is not repeated: there might be two keys. */
  issueKey(asked: IssueKey, options?: CallOptions): Promise<IssuedKey>;
  revokeKey(keyId: string, options?: CallOptions): Promise<RevokedKey>;
  usage(query?: UsageQuery, options?: CallOptions): Promise<Usage>;
  /** The records as signed NDJSON, for `bss audit verify`; taken once, not repeated. */
  exportAudit(query?: Pick<UsageQuery, 'from' | 'to'>, options?: StreamOptions): Promise<FilesZip>;
  pool(query?: PoolQuery, options?: CallOptions): Promise<PoolSeries>;
  queue(options?: CallOptions): Promise<Queue>;
  /** What waits for a person, or is taken by one, in all sessions; oldest first. */
  handoffs(query?: { status?: 'requested' | 'taken' }, options?: CallOptions): Promise<Handoff[]>;
};

const KEYS = '/api/keys';

export function createOrganization(requester: Requester): OrganizationCalls {
  return {
    get: (options) => requester.json({ method: 'GET', path: '/api/organization', ...options }),
    async allowOrigins(origins, options) {
      const path = '/api/organization/origins';
      const request = { method: 'PUT', path, body: { allowed_origins: origins } } as const;
      const allowed = await requester.json<Static<typeof schemas.AllowedOrigins>>({
        ...request,
        ...options,
      });
      return allowed.allowed_origins;
    },
    async listKeys(options) {
      const request = { method: 'GET', path: KEYS, ...options } as const;
      return (await requester.json<Static<typeof schemas.KeyList>>(request)).keys;
    },
    issueKey: (body, options) => requester.json({ method: 'POST', path: KEYS, body, ...options }),
    revokeKey(keyId, options) {
      const path = `${KEYS}/${encodeURIComponent(keyId)}`;
      return requester.json({ method: 'DELETE', path, ...options });
    },
    usage: (query = {}, options) =>
      requester.json({ method: 'GET', path: '/api/usage', query: queryOf(query), ...options }),
    async exportAudit(query = {}, options = {}) {
      const path = '/api/audit/export';
      const request = { method: 'GET', path, query: queryOf(query), ...options } as const;
      const { body: stream } = await requester.open(request);
      const body = stream ?? streamOf(nothing());
      return { body, saveTo: (to) => saveTo(body, to) };
    },
    pool: (query = {}, options) =>
      requester.json({ method: 'GET', path: '/api/pool', query: queryOf(query), ...options }),
    queue: (options) => requester.json({ method: 'GET', path: '/api/queue', ...options }),
    handoffs: (query, options) => listOpenHandoffs(requester, query, options),
  };
}

async function* nothing(): AsyncGenerator<Uint8Array, void, void> {}
