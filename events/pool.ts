import { Type, type Static } from 'typebox';

const Count = Type.Integer({ minimum: 0 });
const Counted = (description: string) => Type.Integer({ minimum: 0, description });

/** The resource that keeps a server from launching more browsers. */
export const PoolLimit = Type.Union([Type.Literal('memory'), Type.Literal('cpu'), Type.Null()], {
  description: 'resource that prevents further launches; null: none',
});
export type PoolLimit = Static<typeof PoolLimit>;

const Moment = (description: string) =>
  Type.Integer({ minimum: 0, description: `${description}, milliseconds since the epoch` });
const Size = Type.Integer({ minimum: 1, description: 'requests of the burst' });

/** Requests that came at once, as parallel workers send them. */
export const PoolBurst = Type.Object({ at: Moment('its first request'), size: Size });
export type PoolBurst = Static<typeof PoolBurst>;

/** What a server remembers of the bursts of requests that it accepted; oldest first. */
export const PoolBursts = Type.Object(
  {
    underWay: Type.Union(
      [
        Type.Object({
          at: Moment('its first request'),
          lastAt: Moment('its last request so far'),
          size: Size,
        }),
        Type.Null(),
      ],
      { description: 'the last requests, which may become a burst; null: none yet' },
    ),
    recent: Type.Array(PoolBurst, { maxItems: 48, description: 'the last bursts of each size' }),
    starts: Type.Array(PoolBurst, {
      maxItems: 16,
      description: 'the bursts among the last that followed none of their size for half an hour',
    }),
  },
  { description: 'the bursts of requests that the server remembers' },
);
export type PoolBursts = Static<typeof PoolBursts>;

/**
 * All inputs of a decision on the size of a server's pool, so that any decision can be repeated.
 */
export const PoolInputs = Type.Object(
  {
    isDraining: Type.Boolean({ description: 'it takes no new sessions' }),
    idle: Counted('idle browsers'),
    launching: Counted('browsers that are being launched'),
    spare: Type.Optional(
      Counted('browsers being launched that will wait; in decisions of policy 2 and later'),
    ),
    busy: Counted('browsers that serve a session'),
    ending: Counted('browsers that are being ended'),
    waiting: Type.Integer({
      minimum: 0,
      description: 'accepted requests that have no browser yet',
    }),
    unserved: Type.Optional(
      Counted(
        'requests among them that no launch under way is for; in decisions of policy 2 and later',
      ),
    ),
    arrivals10s: Type.Integer({ minimum: 0, description: 'requests accepted in the last 10 s' }),
    arrivals60s: Type.Integer({ minimum: 0, description: 'requests accepted in the last 60 s' }),
    launchMs: Type.Integer({ minimum: 0, description: 'median of the last launches' }),
    minIdle: Counted('lower bound of idle browsers'),
    maxIdle: Counted('upper bound of idle browsers'),
    max: Type.Integer({ minimum: 1, description: 'upper bound of browsers' }),
    launchesAtOnce: Type.Integer({ minimum: 1, description: 'upper bound of concurrent launches' }),
    memoryFreeBytes: Type.Union([Count, Type.Null()], {
      description: 'free memory; null: unknown',
    }),
    browserBytes: Type.Integer({ minimum: 0, description: 'expected memory of a browser' }),
    cpuPressure: Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()], {
      description: 'share of the last minute in which a task waited for a core; null: unknown',
    }),
    target: Type.Integer({ minimum: 0, description: 'target number of idle browsers so far' }),
    limitedBy: PoolLimit,
    calmMs: Type.Integer({
      minimum: 0,
      description: 'how long demand has been below the target, milliseconds',
    }),
    calmPeak: Type.Integer({ minimum: 0, description: 'peak demand in that time' }),
    surplusMs: Type.Integer({
      minimum: 0,
      description: 'how long more browsers have been idle than the target, milliseconds',
    }),
    now: Type.Optional(Moment('the time of the decision; in decisions of policy 3 and later')),
    bursts: Type.Optional(PoolBursts),
  },
  { description: 'inputs of the decision' },
);
export type PoolInputs = Static<typeof PoolInputs>;

export const PoolDecision = Type.Object(
  {
    need: Type.Integer({ minimum: 0, description: 'demand: browsers for the expected requests' }),
    target: Type.Integer({ minimum: 0, description: 'target number of idle browsers from now on' }),
    limitedBy: PoolLimit,
    room: Type.Integer({
      minimum: 0,
      description: 'browsers that may still be launched',
    }),
    launch: Counted('browsers to launch now'),
    retire: Counted('idle browsers to terminate now'),
  },
  { description: 'the decision' },
);
export type PoolDecision = Static<typeof PoolDecision>;
