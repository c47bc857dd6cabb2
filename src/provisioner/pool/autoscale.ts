import type { ServerEvent } from '#events/server.ts';
import type { PoolDecision, PoolInputs } from '#events/pool.ts';
import { decidePool, isStuck, POLICY } from '#src/domain/fleet/pool-policy.ts';
import { endWorkload } from './terminate.ts';
import type { Host } from './host-resources.ts';
import { giveBack } from './launch.ts';
import { countsOf, factsOf, unservedOf, type Pool } from './pool.ts';

/** How often the pool's size is thought about; arrivals are counted by the second. */
const THINK_EVERY_MS = 1_000;
/** For so long a request waits that nothing can be launched for; then it is for other servers. */
const STUCK_MS = 5_000;
/** What a launch is expected to take before the first has been measured. */
const LAUNCH_MS = 1_000;

type Resized = Extract<ServerEvent, { type: 'server.pool-resized' }>['data'];
export type Autoscaler = {
  /** Reads the machine and thinks, now. */
  think(): Promise<void>;
} & AsyncDisposable;

/**
 * Once a second: reads what the machine can bear, decides how many browsers are to wait, and
 * retires what is too many. It launches nothing itself: the pool fills up to the target. What it
 * changes its mind about is told with all that it was decided on; the next change waits until that
 * is told, and of several that wait the last is told.
 */
export function startAutoscaler(parts: {
  pool: Pool;
  readHost: () => Promise<Host>;
  tell: (resized: Resized) => Promise<void>;
}): Autoscaler {
  const { pool, readHost, tell } = parts;
  const calm = createCalm();
  let stuckSince: number | null = null;
  let untold: Resized | null = null;
  let telling: Promise<void> | null = null;
  let thinking: Promise<void> | null = null;

  async function tellAll(): Promise<void> {
    for (let next = untold; next !== null; next = untold) {
      untold = null;
      await tell(next).catch((error: unknown) =>
        pool.log.warn({ err: error }, 'the log does not know the size of the pool'),
      );
    }
    telling = null;
  }
  async function decide(): Promise<void> {
    const host = await readHost();
    const hasChanged = host.memoryFreeBytes !== pool.host.memoryFreeBytes;
    pool.host = host;
    const inputs = inputsOf(pool, calm);
    const decision = decidePool(inputs);
    calm.note(inputs, decision);
    const { target, limitedBy } = decision;
    const isNew = target !== inputs.target || limitedBy !== inputs.limitedBy;
    if (isNew && pool.isOpen) {
      pool.size = { target, limitedBy };
      pool.log.info({ ...inputs, ...decision }, 'pool resized');
      untold = { policy: POLICY, inputs, decision };
      telling ??= tellAll();
    }
    const retire = pool.canLaunch ? decision.retire : 0;
    for (let retired = 0; retired < retire; retired += 1) retireOne(pool);
    if (isNew || hasChanged) pool.changed();
    giveBackStuck();
  }
  /** One at a time, each after as long: what is there may be enough for the next. */
  function giveBackStuck(): void {
    const [request] = unservedOf(pool);
    if (request === undefined || !pool.isOpen || !pool.canLaunch || !isStuck(factsOf(pool))) {
      stuckSince = null;
      return;
    }
    stuckSince ??= performance.now();
    if (ageOf(stuckSince) < STUCK_MS) return;
    stuckSince = null;
    giveBack(pool, request, 'its memory is used up').catch((error: unknown) =>
      pool.log.error({ err: error, session: request.identity }, 'a request was not given back'),
    );
  }
  async function think(): Promise<void> {
    thinking ??= decide()
      .catch((error: unknown) => pool.log.error({ err: error }, 'the pool was not thought about'))
      .finally(() => (thinking = null));
    await thinking;
  }
  const timer = setInterval(() => void think(), THINK_EVERY_MS);
  timer.unref();
  return {
    think,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await thinking;
      await telling;
    },
  };
}

function retireOne(pool: Pool): void {
  const member = pool.roster.longestIdle();
  if (member === null) return;
  endWorkload(pool, member, 'retired').catch((error: unknown) =>
    pool.log.error({ err: error, workloadId: member.workloadId }, 'a browser was not retired'),
  );
}

function inputsOf(pool: Pool, calm: Calm): PoolInputs {
  const { limits, arrivals, launchTimes, host, size } = pool;
  return {
    isDraining: pool.isDraining,
    ...countsOf(pool),
    arrivals10s: arrivals.last(10),
    arrivals60s: arrivals.last(60),
    launchMs: median(launchTimes) ?? LAUNCH_MS,
    ...limits,
    ...host,
    ...size,
    ...calm.now(),
  };
}

type Calm = ReturnType<typeof createCalm>;

/** For how long less was needed than was to wait, how much at most, and more waited than was to. */
function createCalm() {
  let belowSince: number | null = null;
  let peak = 0;
  let surplusSince: number | null = null;
  return {
    now: () => ({ calmMs: ageOf(belowSince), calmPeak: peak, surplusMs: ageOf(surplusSince) }),
    note({ target: before, idle }: PoolInputs, { need, target }: PoolDecision): void {
      // A target that was lowered has to be calm anew before it is lowered further.
      const isSame = need < target && target === before && belowSince !== null;
      peak = isSame ? Math.max(peak, need) : need;
      if (!isSame) belowSince = need < target ? performance.now() : null;
      surplusSince = idle > target ? (surplusSince ?? performance.now()) : null;
    },
  };
}

function ageOf(since: number | null): number {
  return since === null ? 0 : Math.round(performance.now() - since);
}

function median(values: readonly number[]): number | null {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? null;
}
