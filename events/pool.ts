import { Type, type Static } from 'typebox';

const Count = Type.Integer({ minimum: 0 });
const Counted = (description: string) => Type.Integer({ minimum: 0, description });

/** The resource that keeps a server from launching more browsers. */
export const PoolLimit = Type.Union([Type.Literal('memory'), Type.Literal('cpu'), Type.Null()], {
  description: 'what keeps it from launching more; null: nothing',
});
export type PoolLimit = Static<typeof PoolLimit>;

/**
 * All inputs of a decision on the size of a server's pool, so that any decision can be repeated.
 */
export const PoolInputs = Type.Object(
  {
    isDraining: Type.Boolean({ description: 'it takes no new sessions' }),
    idle: Counted('browsers that wait'),
    launching: Counted('browsers that are being launched'),
    spare: Type.Optional(
      Counted('browsers being launched that will wait; in decisions of policy 2 and later'),
    ),
    busy: Counted('browsers that serve a session'),
    ending: Counted('browsers that are being ended'),
    waiting: Type.Integer({
      minimum: 0,
      description: 'requests it has taken that have no browser',
    }),
    unserved: Type.Optional(
      Counted(
        'requests among them that no launch under way is for; in decisions of policy 2 and later',
      ),
    ),
    arrivals10s: Type.Integer({ minimum: 0, description: 'requests taken in the last 10 s' }),
    arrivals60s: Type.Integer({ minimum: 0, description: 'requests taken in the last 60 s' }),
    launchMs: Type.Integer({ minimum: 0, description: 'median of the last launches' }),
    minIdle: Counted('the fewest that are to wait'),
    maxIdle: Counted('the most that are to wait'),
    max: Type.Integer({ minimum: 1, description: 'the most browsers it runs' }),
    launchesAtOnce: Type.Integer({ minimum: 1, description: 'the most launches at once' }),
    memoryFreeBytes: Type.Union([Count, Type.Null()], { description: 'null: not known' }),
    browserBytes: Type.Integer({ minimum: 0, description: 'what a browser is expected to take' }),
    cpuPressure: Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()], {
      description: 'share of the last minute in which something waited for a core; null: not known',
    }),
    target: Type.Integer({ minimum: 0, description: 'browsers that were to wait until now' }),
    limitedBy: PoolLimit,
    calmMs: Type.Integer({
      minimum: 0,
      description: 'for how long less was needed than the target',
    }),
    calmPeak: Type.Integer({ minimum: 0, description: 'the most that was needed in that time' }),
    surplusMs: Type.Integer({
      minimum: 0,
      description: 'for how long more waited than the target',
    }),
  },
  { description: 'all that it was decided on' },
);
export type PoolInputs = Static<typeof PoolInputs>;

export const PoolDecision = Type.Object(
  {
    need: Type.Integer({ minimum: 0, description: 'browsers that the arrivals ask for' }),
    target: Type.Integer({ minimum: 0, description: 'browsers that are to wait from now on' }),
    limitedBy: PoolLimit,
    room: Type.Integer({
      minimum: 0,
      description: 'browsers that it may launch beyond what it has',
    }),
    launch: Counted('browsers to launch now'),
    retire: Counted('waiting browsers to end now'),
  },
  { description: 'what was decided' },
);
export type PoolDecision = Static<typeof PoolDecision>;
