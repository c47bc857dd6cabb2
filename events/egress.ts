import { Type, type Static } from 'typebox';
import { Moment } from './fields.ts';

/** Patterns of each of the two lists. */
export const egressPatternsMax = 100;
/** Hosts that a record and a session's state name; the others are one sum. */
export const egressHostsMax = 20;

const Patterns = (description: string) =>
  Type.Array(Type.String({ maxLength: 300 }), { maxItems: egressPatternsMax, description });

/**
 * The rules for what a session's browser connects to, as of its request. They never change. A
 * private network is closed whatever they say.
 */
export const EgressRules = Type.Object(
  {
    allow: Type.Optional(
      Patterns('hosts that the browser may connect to; absent: all that are not denied'),
    ),
    deny: Patterns('hosts that the browser may not connect to, even if they are allowed'),
    proxy: Type.Optional(
      Type.Object(
        {
          server: Type.String({
            maxLength: 300,
            description: 'as `http://proxy.example.com:3128`',
          }),
          username: Type.Optional(Type.String({ maxLength: 256, description: 'for the proxy' })),
          sealedPassword: Type.Optional(
            Type.String({
              maxLength: 512,
              description: 'the password, encrypted with a key of the service',
            }),
          ),
        },
        { description: 'the proxy through which all connections go; absent: none' },
      ),
    ),
  },
  { description: 'what the browser may connect to; absent: everything but private networks' },
);
export type EgressRules = Static<typeof EgressRules>;

/** Why connections are refused. */
export const EgressRefusal = Type.Union(
  [
    Type.Literal('denied'),
    Type.Literal('not_allowed'),
    Type.Literal('private_network'),
    Type.Literal('unresolved'),
    Type.Literal('too_many'),
  ],
  {
    description:
      'denied: a pattern of `deny`; not_allowed: none of `allow`; private_network: it is, or ' +
      'resolves to, an address that no session reaches; unresolved: the name has no address; ' +
      'too_many: the browser had as many connections open as it may',
  },
);
export type EgressRefusal = Static<typeof EgressRefusal>;

const Counted = (description: string) => Type.Integer({ minimum: 0, description });
const counts = {
  connections: Counted('connections and plain HTTP requests that were let through'),
  bytesSent: Counted('bytes to the host'),
  bytesReceived: Counted('bytes from the host'),
  refused: Counted('connections and requests that were refused'),
};

export const HostTraffic = Type.Object({
  host: Type.String({ maxLength: 255, description: 'name or address of the host' }),
  ...counts,
  lastRefusal: Type.Optional(EgressRefusal),
});
export type HostTraffic = Static<typeof HostTraffic>;

const traffic = {
  hosts: Type.Array(HostTraffic, {
    maxItems: egressHostsMax,
    description: 'the hosts with most bytes and refusals',
  }),
  others: Type.Object(counts, { description: 'all other hosts together' }),
};

export const EgressTraffic = Type.Object(traffic);
export type EgressTraffic = Static<typeof EgressTraffic>;

/** What was counted for one session or several, to all hosts together. */
export const EgressTotals = Type.Object(
  {
    bytesSent: Counted('bytes that browsers sent'),
    bytesReceived: Counted('bytes that browsers received'),
    refused: Counted('connections and requests that were refused'),
  },
  { description: 'of sessions with egress rules; absent: no traffic was recorded' },
);
export type EgressTotals = Static<typeof EgressTotals>;

/** How the rules are enforced: by the network, by the browser alone, or not needed. */
export const EgressEnforcement = Type.Union(
  [Type.Literal('network'), Type.Literal('browser'), Type.Literal('simulated')],
  {
    description:
      'network: the browser has no other way out; browser: it was started with the proxy, and ' +
      'code that breaks out of it is not held; simulated: there is no browser',
  },
);
export type EgressEnforcement = Static<typeof EgressEnforcement>;

export const egressEvents = {
  /** Traffic since the last record; only for sessions with rules. */
  'session.egress-recorded': Type.Object({ at: Moment, ...traffic }),
};
