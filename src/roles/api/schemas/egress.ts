import { Type, type Static } from 'typebox';
import {
  EgressEnforcement,
  EgressRefusal,
  egressHostsMax,
  egressPatternsMax,
  type EgressRules,
} from '#events/egress.ts';
import type { SessionState } from '#events/session.ts';
import { normalizePattern, normalizeProxyServer } from '#src/kernel/domain/egress/rules.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { Count, Nullable, Words } from './fields.ts';

/** Schemas of a session's egress rules: what its browser may connect to. */

const EXAMPLE = {
  allow: ['example.com', '*.example.com:443'],
  deny: ['203.0.113.0/24'],
  server: 'http://proxy.example.com:3128',
};

const WHY_REFUSED =
  'denied: a pattern of `deny`; not_allowed: none of `allow`; private_network: it is, or ' +
  'resolves to, an address that no session reaches; unresolved: the name has no address; ' +
  'too_many: as many connections were open as may be';
const HOW_ENFORCED =
  'network: the browser has no other way out; browser: it was started with the proxy, and what ' +
  'breaks out of it, or steers it, is not held; simulated: there is no browser';

/** Every event of a session carries its rules. */
const TEXT_BYTES_MAX = 4_096;

const Patterns = (description: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 300 }), {
      maxItems: egressPatternsMax,
      description,
    }),
  );
/** No control character; RFC 7617 forbids a colon in a user's name. */
const USERNAME = '^[^\\u0000-\\u001f\\u007f:\\ud800-\\udfff]{1,255}$';
const PASSWORD = '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]{1,255}$';

export const EgressBody = Type.Object(
  {
    allow: Patterns(
      'hosts that the browser may connect to: `example.com`, `*.example.com` (every name below ' +
        'it), an address or a range as `198.51.100.0/24`, each with `:443` or without; absent: ' +
        'all that are not denied',
    ),
    deny: Patterns('hosts that the browser may not connect to, even if `allow` names them'),
    proxy: Type.Optional(
      Type.Object(
        {
          server: Type.String({
            maxLength: 300,
            description: '`http://`, `https://` or `socks5://`, a host and a port',
          }),
          username: Type.Optional(Type.String({ pattern: USERNAME })),
          password: Type.Optional(
            Type.String({ pattern: PASSWORD, description: 'stored encrypted, never answered' }),
          ),
        },
        {
          additionalProperties: false,
          description: 'a proxy on the Internet, through which all allowed connections go',
        },
      ),
    ),
  },
  {
    title: 'Egress',
    additionalProperties: false,
    description:
      'what the browser may connect to, for the whole life of the session; private networks are ' +
      'closed in any case. A browser is launched for the session. `allow` and `deny` together ' +
      `have at most ${TEXT_BYTES_MAX} bytes`,
    examples: [{ allow: EXAMPLE.allow, deny: EXAMPLE.deny }],
  },
);

const counts = {
  connections: Count(12, 'connections and plain HTTP requests that were let through'),
  bytes_sent: Count(18_304),
  bytes_received: Count(402_117),
  refused: Count(0, 'connections and requests that were refused'),
};

const Traffic = Type.Object(
  {
    ...counts,
    hosts: Type.Array(
      Type.Object(
        {
          host: Type.String({ examples: ['www.example.com'] }),
          ...counts,
          refused_reason: Nullable(
            Words(
              EgressRefusal.anyOf.map((one) => one.const),
              { examples: ['not_allowed'] },
            ),
            { examples: [null], description: WHY_REFUSED },
          ),
        },
        { title: 'EgressHost' },
      ),
      { description: `the ${egressHostsMax} hosts with most bytes and most that was refused` },
    ),
  },
  {
    title: 'EgressTraffic',
    description:
      'what was recorded by now: 10 s after the start, then ever less often, and at the end',
  },
);

export const EgressAnswer = Type.Object(
  {
    allow: Nullable(Type.Array(Type.String()), {
      examples: [EXAMPLE.allow],
      description: 'null: all that are not denied',
    }),
    deny: Type.Array(Type.String(), { examples: [EXAMPLE.deny] }),
    proxy: Nullable(
      Type.Object(
        {
          server: Type.String({ examples: [EXAMPLE.server] }),
          username: Nullable(Type.String(), { examples: ['scraper'] }),
        },
        { title: 'SessionEgressProxy' },
      ),
      { examples: [null], description: 'without its password' },
    ),
    enforced: Nullable(
      Words(
        EgressEnforcement.anyOf.map((one) => one.const),
        { examples: ['network'] },
      ),
      { description: `null until it has a browser; ${HOW_ENFORCED}` },
    ),
    traffic: Nullable(Traffic, { description: 'null: nothing was recorded' }),
  },
  { title: 'SessionEgress' },
);

/** Encrypts the password of a session's proxy, and marks it for comparisons. */
export type ProxyPasswordSealer = {
  seal(password: string, sessionId: string): string;
  markOf(password: string): string;
};

/** Whether a host is one at which this service is reached. */
export type IsOwnHost = (host: string) => boolean;

/** The rules that a request asks for, in their one spelling, or the rejection. */
export function readEgress(
  asked: Static<typeof EgressBody>,
  sessionId: string,
  { seal, isOwnHost }: Pick<ProxyPasswordSealer, 'seal'> & { isOwnHost: IsOwnHost },
): EgressRules | Rejection {
  const allow = readPatterns('allow', asked.allow);
  if (allow !== undefined && isRejection(allow)) return allow;
  const deny = readPatterns('deny', asked.deny) ?? [];
  if (isRejection(deny)) return deny;
  const bytes = [...(allow ?? []), ...deny].reduce((sum, one) => sum + one.length, 0);
  if (bytes > TEXT_BYTES_MAX)
    return reject('INVALID_REQUEST', { field: 'egress', bytes, max_bytes: TEXT_BYTES_MAX });
  const rules = { ...(allow !== undefined && { allow }), deny };
  if (asked.proxy === undefined) return rules;
  const { server: text, username, password } = asked.proxy;
  const server = normalizeProxyServer(text);
  if (server === null) return reject('INVALID_REQUEST', { field: 'egress.proxy.server' });
  if (isOwnHost(new URL(server).hostname))
    return reject(
      'INVALID_REQUEST',
      { field: 'egress.proxy.server' },
      { message: 'The proxy’s address is one of this service itself.' },
    );
  if (password !== undefined && username === undefined)
    return reject('INVALID_REQUEST', { field: 'egress.proxy.username' });
  const proxy = {
    server,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { sealedPassword: seal(password, sessionId) }),
  };
  return { ...rules, proxy };
}

function readPatterns(
  list: 'allow' | 'deny',
  texts: readonly string[] | undefined,
): string[] | Rejection | undefined {
  if (texts === undefined) return undefined;
  const patterns: string[] = [];
  for (const [index, text] of texts.entries()) {
    const pattern = normalizePattern(text);
    if (pattern === null)
      return reject(
        'INVALID_REQUEST',
        { field: `egress.${list}.${index}`, pattern: text },
        { message: 'A pattern is a host name, *. and a name, an address or a range of addresses.' },
      );
    patterns.push(pattern);
  }
  return [...new Set(patterns)];
}

/**
 * The body of a create as its fingerprint sees it: a hash of a short password could be guessed.
 */
export function withoutPassword<Body extends { egress?: Static<typeof EgressBody> }>(
  body: Body,
  { markOf }: Pick<ProxyPasswordSealer, 'markOf'>,
): Body {
  const { egress } = body;
  if (egress?.proxy?.password === undefined) return body;
  const proxy = { ...egress.proxy, password: markOf(egress.proxy.password) };
  return { ...body, egress: { ...egress, proxy } };
}

/** A session's rules and traffic as every answer has them; null: it has no rules. */
export function presentEgress({
  egress,
  egressTraffic,
  workload,
}: Pick<SessionState, 'egress' | 'egressTraffic' | 'workload'>): Static<
  typeof EgressAnswer
> | null {
  if (egress === undefined) return null;
  const { allow = null, deny, proxy } = egress;
  return {
    allow,
    deny,
    proxy: proxy === undefined ? null : { server: proxy.server, username: proxy.username ?? null },
    enforced: workload?.egress ?? null,
    traffic: egressTraffic === undefined ? null : presentTraffic(egressTraffic),
  };
}

function presentTraffic({ hosts, others }: NonNullable<SessionState['egressTraffic']>) {
  const all = [...hosts, others];
  const sum = (count: keyof typeof others) => all.reduce((total, one) => total + one[count], 0);
  return {
    connections: sum('connections'),
    bytes_sent: sum('bytesSent'),
    bytes_received: sum('bytesReceived'),
    refused: sum('refused'),
    hosts: hosts.map((one) => ({
      host: one.host,
      connections: one.connections,
      bytes_sent: one.bytesSent,
      bytes_received: one.bytesReceived,
      refused: one.refused,
      refused_reason: one.lastRefusal ?? null,
    })),
  };
}
