import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { TSchema } from 'typebox';
import type { ErrorName } from '#src/kernel/errors.ts';
import type { Action } from '#src/kernel/domain/organization/roles.ts';
import type { Door } from './door.ts';
import type { Cost } from './cost.ts';

/** A server whose routes have the types of their TypeBox schemas. */
export type ApiServer = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** The `config` of every route of the API, beside its `schema`. */
export type RouteConfig = {
  /**
   * The permission that the caller's role needs; `public`: the route needs no credential, and its
   * requests are counted by address. `operator`: the route needs OPERATOR_TOKEN, and failed
   * attempts are counted by address.
   */
  action: Action | 'public' | 'operator';
  /** The rate limit neither counts nor refuses its requests: health, readiness and metrics. */
  isUnlimited?: true;
  /** The door of all its requests; left out: the REST API. */
  door?: Door;
  /** The gateway bounds what callers send: only requests without a credential are counted. */
  isBoundedElsewhere?: true;
  /** Left out: 1 unit. */
  cost?: Cost;
  /** Errors of the route, beside those of every route of its kind. */
  refusals: readonly ErrorName[];
  /**
   * `handler`: the handler awaits `request.admitted` itself, beside a read of its own, so that the
   * round trips of the rate limiter and of the read overlap. Left out: the handler runs after
   * admission.
   */
  admission?: 'handler';
  /** The schema's `response`, which is for the document alone; the server puts it here. */
  response?: unknown;
};

declare module 'fastify' {
  // oxlint-disable-next-line typescript/consistent-type-definitions
  interface FastifyContextConfig extends Partial<RouteConfig> {}
}

/** A response of the document. Header schemas need a description. */
export function response(
  description: string,
  schema: TSchema,
  more: { contentType?: string; headers?: Record<string, TSchema> } = {},
): unknown {
  const { contentType = 'application/json', headers } = more;
  return {
    description,
    ...(headers && { headers }),
    content: { [contentType]: { schema } },
  };
}

/** The response with a second type of content, JSON. */
export function responses(first: unknown, description: string, schema: TSchema): unknown {
  const { description: other, content, ...rest } = first as Described;
  return {
    ...rest,
    description: `${other}; ${description}`,
    content: { ...content, 'application/json': { schema } },
  };
}
type Described = { description: string; content: object };

export function emptyResponse(description: string): unknown {
  return { type: 'null', description };
}
