import type { TimerKind } from '#events/subjects.ts';
import type { Inbox } from './work-queue.ts';

/** A moment in a session's life at which something has to be decided anew. */
export type Timer = { organizationId: string; sessionId: string; kind: TimerKind };

/**
 * Port: durable timers. Adapters: timers.jetstream.ts, timers.memory.ts.
 * A firing is a hint and may come late (by 300 ms, or seconds after a failover), early or twice:
 * whoever hears it decides against the session's state.
 */
export type Timers = {
  /** Sets the timer; one that is set already moves. `at` in the past fires at once. */
  arm(timer: Timer, at: Date): Promise<void>;
  /** Drops all timers of a session. */
  cancel(organizationId: string, sessionId: string): Promise<void>;
  /** The work queue of what has fired. */
  fired(name: string): Promise<Inbox<Timer>>;
};
