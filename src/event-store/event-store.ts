import type { Unsequenced } from '#events/codec.ts';
import type { RecordedEvent, RecordedOf, RefOf } from '#events/events.ts';
import type { AggregateKind, AggregateRef } from '#events/subjects.ts';
import type { Inbox } from '../messaging/work-queue.ts';

/**
 * Port: the one append-only log. Adapters: event-log.jetstream.ts, event-log.memory.ts.
 * Every method throws Unavailable('event-log') when the log does not answer within its bound.
 */
export type EventLog = {
  /** The aggregate's last event, which carries its state; null where it has none. */
  last<Kind extends AggregateKind>(
    aggregate: RefOf<Kind>,
    options?: { fromLeader?: boolean },
  ): Promise<RecordedOf<Kind> | null>;

  /** The same as it was at a sequence: the last event at or before it. */
  lastUpTo<Kind extends AggregateKind>(
    aggregate: RefOf<Kind>,
    sequence: number,
  ): Promise<RecordedOf<Kind> | null>;

  /**
   * Appends all changes or none. Each change names the sequence of its aggregate's last event as
   * the decision saw it (0: none yet). `handle.ts` and `ledger-line.ts` are the only callers.
   * Events of several commands may go together where none of them was tried before: by the first
   * change's command alone is the append known again.
   */
  append(changes: readonly Change[]): Promise<Appended>;

  /** All events of an aggregate, oldest first. */
  history<Kind extends AggregateKind>(aggregate: RefOf<Kind>): AsyncIterable<RecordedOf<Kind>>;

  /**
   * Events in log order, without gap or duplicate, in batches of what is there (at most `batchMax`,
   * default 500), until the signal aborts. Survives reconnects and restarts of the log.
   */
  follow(options: FollowOptions): AsyncIterable<RecordedEvent[]>;

  /** Sequence of the newest event that one of the subjects matches (default: of all); 0 if none. */
  lastSequence(subjects?: readonly string[]): Promise<number>;

  /**
   * Sequence of the newest event that was stored before the time (ISO 8601 UTC), by the log's own
   * clock; 0 if none.
   */
  sequenceBefore(time: string): Promise<number>;

  /** Which log this is, and how far it goes: what was folded from another one is worth nothing. */
  facts(): Promise<LogFacts>;

  /**
   * The work queue of that name over those subjects, made where it is missing; starts with the
   * oldest event.
   */
  inbox(name: string, subjects: readonly string[]): Promise<Inbox<RecordedEvent>>;
};

/** `id` is of this log alone: one that is made anew in its place has another. */
export type LogFacts = { id: string; lastSequence: number };

export type FollowOptions = {
  subjects: readonly string[];
  /** Sequence after which to begin; 0: the whole log; 'end': what comes from now on. */
  after: number | 'end';
  signal: AbortSignal;
  batchMax?: number;
  /**
   * For who needs only each aggregate's newest state. Asked of an event that another of its
   * aggregate, at `by`, follows in the same batch with a state that can be read; true: it is left
   * out, unread. An adapter need not ask.
   */
  mayLeaveOut?: (sequence: number, by: number) => boolean;
  /**
   * Called with false where the log cannot be heard, and with true at its first word after that,
   * which need be no event. An adapter need not call it.
   */
  onHearing?: (isHearing: boolean) => void;
  /** An event that cannot be read. It is not in any batch; the follower goes on. */
  onMalformed: (poison: { sequence: number; subject: string; reason: string }) => void;
};

/** What commands do to one aggregate. `events` is never empty. */
export type Change = {
  aggregate: AggregateRef;
  expectedSequence: number;
  events: readonly Unsequenced[];
};

/**
 * - appended: stored; `sequences` in the order of the changes' events.
 * - repeated: the log already holds these events (an earlier try whose answer was lost).
 * - conflict: an aggregate has moved on since it was read; nothing was stored. `isDoubtful`: not
 *   yet at least, for an answer was lost, and what it was to may still be on its way.
 */
export type Appended =
  | { outcome: 'appended'; sequences: number[] }
  | { outcome: 'repeated' }
  | { outcome: 'conflict'; isDoubtful?: true };
