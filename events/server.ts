import { Type, type Static } from 'typebox';
import type { EventOf } from './envelope.ts';
import { EgressEnforcement } from './egress.ts';
import { CarriedForward } from './fields.ts';
import { PoolBursts, PoolDecision, PoolInputs, PoolLimit } from './pool.ts';

const Id = Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' });
const Count = Type.Integer({ minimum: 0 });
const Counted = (description: string) => Type.Integer({ minimum: 0, description });

/** Browsers that run without a reason, and reasons to run without a browser: both should be 0. */
export const Leaks = Type.Object(
  {
    browsers: Type.Integer({
      minimum: 0,
      description: 'browsers without a session or a place in the pool',
    }),
    sessions: Type.Integer({ minimum: 0, description: 'sessions that have no browser but should' }),
  },
  { description: 'differences that are left; both should be 0' },
);
export type Leaks = Static<typeof Leaks>;

/** What a server launches its browsers from. */
export const LaunchedBuild = Type.Object(
  {
    version: Type.String({
      maxLength: 64,
      description: 'Chromium’s version; `simulated` or `unknown` where there is none',
    }),
    builtAt: Type.Optional(
      Type.String({
        pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
        description: 'when its packages were installed, or its program built; absent: unknown',
      }),
    ),
  },
  { description: 'the browser that new sessions get' },
);
export type LaunchedBuild = Static<typeof LaunchedBuild>;

/** A server is a machine that runs browsers; its provisioner records its events. */
export const serverEvents = {
  'server.joined': Type.Object({
    ip: Type.String({ description: 'private address of the server' }),
    browsers: Type.Union(
      [
        Type.Literal('docker'),
        Type.Literal('kubernetes'),
        Type.Literal('process'),
        Type.Literal('simulated'),
      ],
      { description: 'how the server runs browsers' },
    ),
    poolMax: Type.Integer({ minimum: 1, description: 'upper bound of browsers' }),
    browser: Type.Optional(LaunchedBuild),
    egress: Type.Optional(EgressEnforcement),
  }),
  /** New browsers are launched from a newer build from now on. */
  'server.browser-updated': Type.Object({
    ...LaunchedBuild.properties,
    egress: Type.Optional(
      Type.Union([EgressEnforcement, Type.Null()], {
        description: 'how it enforces egress rules from now on; null: it cannot; absent: as before',
      }),
    ),
  }),
  /** It accepts no new sessions; those that it runs continue until they end. */
  'server.draining': Type.Object({}),
  /** The draining server has no browser left. */
  'server.drained': Type.Object({}),
  'server.undrained': Type.Object({}),
  /**
   * The target of idle browsers or the limiting resource has changed, with the inputs of the
   * decision.
   */
  'server.pool-resized': Type.Object({
    policy: Type.Integer({ minimum: 1, description: 'version of the pool policy' }),
    inputs: PoolInputs,
    decision: PoolDecision,
  }),
  /**
   * The running browsers were compared with the event store: what was corrected, and what is left.
   */
  'server.reconciled': Type.Object({
    adopted: Counted('browsers that go on as they are'),
    stopped: Counted('browsers that were ended'),
    failed: Counted('sessions whose browser is gone'),
    corrected: Type.Integer({ minimum: 0, description: 'other differences that were corrected' }),
    leaks: Leaks,
  }),
  /**
   * Its provisioner stops and leaves its browsers to the next one: it does not count as lost for a
   * while.
   */
  'server.restarting': Type.Object({}),
  'server.left': Type.Object({}),
  'server.lost': Type.Object({}),
  'server.carried-forward': CarriedForward,
};
export type ServerEvent = EventOf<typeof serverEvents>;

export const ServerState = Type.Object({
  id: Id,
  ip: Type.String(),
  status: Type.Union([
    Type.Literal('live'),
    Type.Literal('draining'),
    Type.Literal('drained'),
    Type.Literal('left'),
    Type.Literal('lost'),
  ]),
  poolMax: Type.Integer({ minimum: 1 }),
  /** What new browsers are launched from. */
  browser: Type.Optional(LaunchedBuild),
  /** How it enforces egress rules; absent: it cannot. */
  egress: Type.Optional(EgressEnforcement),
  /**
   * Target of idle browsers, and the resource that limits further launches; as of the last
   * decision.
   */
  pool: Type.Optional(Type.Object({ target: Count, limitedBy: PoolLimit })),
  /** As of the last decision, also of one before the last start, which goes on from them. */
  bursts: Type.Optional(PoolBursts),
  /** As of the last comparison. */
  leaks: Type.Optional(Leaks),
});
export type ServerState = Static<typeof ServerState>;
