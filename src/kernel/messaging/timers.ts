import type { TimerKind } from '#events/subjects.ts';
import type { WorkQueue } from './work-queue.ts';

/** A moment in a session's life at which a decision is due. */
export type Timer = { organizationId: string; sessionId: string; kind: TimerKind };

/** A timer with the moment at which it fired, by the clock that fires it; ms since the epoch. */
export type FiredTimer = Timer & { firedAt: number };

export type ScheduledTimers = { has(timer: Timer): boolean };

/**
 * Port: durable timers. Adapters: jetstream/jetstream-timers.ts, timers.memory.ts. A firing is a
 * hint and may come late (by 300 ms, or seconds after a failover), early or twice: its receiver
 * decides by the session's state.
 */
export type Timers = {
  /** Sets the timer, or moves it if it is set already. `at` in the past fires at once. */
  schedule(timer: Timer, at: Date): Promise<void>;
  /** Removes all timers of a session. */
  cancel(organizationId: string, sessionId: string): Promise<void>;
  /** The timers of an organization that are set and have not fired. */
  scheduled(organizationId: string): Promise<ScheduledTimers>;
  /** The work queue of the timers that have fired. */
  fired(name: string): Promise<WorkQueue<FiredTimer>>;
};
