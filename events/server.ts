import { Type, type Static } from 'typebox';
import type { EventOf } from './envelope.ts';
import { PoolDecision, PoolInputs, PoolLimit } from './pool.ts';

const Id = Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' });
const Count = Type.Integer({ minimum: 0 });
const Counted = (description: string) => Type.Integer({ minimum: 0, description });

/** What runs without a reason, and what has a reason to run and does not: both are to be 0. */
export const Leaks = Type.Object(
  {
    browsers: Type.Integer({ minimum: 0, description: 'without a session or a place in the pool' }),
    sessions: Type.Integer({ minimum: 0, description: 'that should have a browser and have none' }),
  },
  { description: 'what is left to be put right; both are to be 0' },
);
export type Leaks = Static<typeof Leaks>;

/** A server is a machine that runs browsers; its provisioner speaks for it. */
export const serverEvents = {
  'server.joined': Type.Object({
    ip: Type.String({ description: 'its private address' }),
    browsers: Type.Union(
      [Type.Literal('docker'), Type.Literal('process'), Type.Literal('simulated')],
      { description: 'as what it runs them' },
    ),
    poolMax: Type.Integer({ minimum: 1, description: 'the most browsers it runs' }),
  }),
  /** It takes no new sessions; those that it runs end as they would. */
  'server.draining': Type.Object({}),
  /** It has nothing left. */
  'server.drained': Type.Object({}),
  'server.undrained': Type.Object({}),
  /** Another number of browsers is to wait, or what limits them has changed; and why. */
  'server.pool-resized': Type.Object({
    policy: Type.Integer({ minimum: 1, description: 'version of the rules that decided' }),
    inputs: PoolInputs,
    decision: PoolDecision,
  }),
  /** What runs was held against the log: what was put right, and what is left to be. */
  'server.reconciled': Type.Object({
    adopted: Counted('browsers that go on as they are'),
    stopped: Counted('browsers that were ended'),
    failed: Counted('sessions whose browser is gone'),
    corrected: Type.Integer({ minimum: 0, description: 'other records that were behind' }),
    leaks: Leaks,
  }),
  /** Its provisioner ends and leaves its browsers to the next one: it is not lost for a while. */
  'server.restarting': Type.Object({}),
  'server.left': Type.Object({}),
  'server.lost': Type.Object({}),
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
  /** Browsers that are to wait, and what keeps it from launching more; as of the last decision. */
  pool: Type.Optional(Type.Object({ target: Count, limitedBy: PoolLimit })),
  /** As of the last comparison. */
  leaks: Type.Optional(Leaks),
});
export type ServerState = Static<typeof ServerState>;
