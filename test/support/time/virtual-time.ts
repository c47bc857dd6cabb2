import { createRandom } from '#test/support/random.ts';
import { contexts, createHeap, schedule, type Clock, type Owner } from './clock.ts';
import { watchRealWork, type RealWork } from './real-work.ts';
import { real, replaceTimers } from './replace-timers.ts';

export type { Owner } from './clock.ts';

/**
 * The time and the randomness of one simulation or test. Timers are run one by one in the order of
 * their times, each once nothing else is left to do, so that a run depends on its seed alone.
 */
export type VirtualTime = {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs code of this owner: its timers, and the code that follows from it, are the owner's. */
  runAs<Result>(owner: Owner, work: () => Result): Result;
  /** Lets time pass until the condition holds or `withinMs` are over; returns whether it holds. */
  runUntil(condition: () => boolean, withinMs: number): Promise<boolean>;
  /**
   * Runs this with time that passes until it ends; resolves or rejects with its outcome.
   * @param giveUp is to end work that waits for what does not happen; it gets as much time again
   * @throws also if a timer's callback threw, or if time passes and the work does not end
   */
  run<Result>(work: () => Promise<Result>, giveUp?: (reason: unknown) => void): Promise<Result>;
  /** Errors that a timer's callback threw; there are to be none. */
  readonly failures: unknown[];
};

/** A wait for real work leaves the processor to it after so many turns of the event loop. */
const TURNS = 20;
const HANGS_AFTER_MS = 3_600_000;
const HANGS = 'it waits for what does not happen in an hour of virtual time';
/** The first moment of each virtual time. */
const START = Date.parse('2026-03-01T12:00:00.000Z');

export function createVirtualTime(seed: number): VirtualTime {
  replaceTimers();
  const random = createRandom(seed, 'process');
  const clock: Clock = { timers: createHeap(), random, startedAt: START, nowMs: 0, orders: 0 };
  const failures: unknown[] = [];

  async function runUntil(
    condition: () => boolean,
    withinMs: number,
    work: Pick<RealWork, 'isPending'>,
  ): Promise<boolean> {
    const end = clock.nowMs + withinMs;
    for (let turns = 1; ; turns += 1) {
      // When this callback runs, no promise is left that could go on.
      await (turns % TURNS === 0 ? real.pause(1) : nextTurn());
      if (condition()) return true;
      if (work.isPending()) continue;
      turns = 0;
      const timer = clock.timers.first();
      if (timer === undefined || timer.at > end) {
        clock.nowMs = end;
        return false;
      }
      clock.timers.takeFirst();
      if (timer.isCleared || timer.context.owner.isDead) continue;
      clock.nowMs = Math.max(clock.nowMs, timer.at);
      if (timer.everyMs === null) timer.isCleared = true;
      else schedule(timer, timer.everyMs);
      try {
        contexts.run(timer.context, timer.run);
      } catch (error) {
        failures.push(error);
      }
    }
  }
  async function run<Result>(
    work: () => Promise<Result>,
    giveUp?: (reason: unknown) => void,
  ): Promise<Result> {
    using realWork = watchRealWork(clock);
    let isOver = false;
    const over = () => void (isOver = true);
    const outcome = contexts.run({ owner: { isDead: false }, clock }, work);
    outcome.then(over, over);
    /** Why the work has not ended; null: it has. */
    async function pass(): Promise<unknown> {
      try {
        return (await runUntil(() => isOver, HANGS_AFTER_MS, realWork)) ? null : new Error(HANGS);
      } catch (error) {
        return error;
      }
    }
    const reason = await pass();
    if (reason !== null) {
      giveUp?.(reason);
      if (giveUp === undefined || (await pass()) !== null) throw reason;
    }
    if (failures.length > 0) throw new AggregateError(failures, 'a timer threw');
    return outcome;
  }
  return {
    now: () => START + clock.nowMs,
    runAs: (owner, work) => contexts.run({ owner, clock }, work),
    async runUntil(condition, withinMs) {
      using realWork = watchRealWork(clock);
      return await runUntil(condition, withinMs, realWork);
    },
    run,
    failures,
  };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void real.setImmediate(resolve));
}
