import type { PendingEvent } from '#events/codec.ts';
import type { RecordedEvent, RecordedOf, RefOf } from '#events/events.ts';
import type { AggregateKind, AggregateRef } from '#events/subjects.ts';

export type ReadLastOptions = {
  /** A replica may lag. */
  fromLeader?: boolean;
  /** The caller has just generated the aggregate's id: it is not looked for in the archive. */
  isNew?: boolean;
};

export type HistoryOptions = { types?: ReadonlySet<string> };

/**
 * Port: the append-only event store. Adapters: jetstream/jetstream-event-store.ts,
 * event-store.memory.ts. Every method throws Unavailable('event-log') if the store does not answer
 * within its bound.
 */
export type EventStore = {
  /**
   * The aggregate's last event, which carries its state; null if it has no events.
   * @throws WrittenByNewer if a newer version of the service wrote it, and this one cannot read it
   */
  readLast<Kind extends AggregateKind>(
    aggregate: RefOf<Kind>,
    options?: ReadLastOptions,
  ): Promise<RecordedOf<Kind> | null>;

  /**
   * The aggregate's last event at or before a sequence; null if there is none.
   * @throws WrittenByNewer
   */
  readLastUpTo<Kind extends AggregateKind>(
    aggregate: RefOf<Kind>,
    sequence: number,
  ): Promise<RecordedOf<Kind> | null>;

  /**
   * Appends all changes or none. Each change names the sequence of its aggregate's last event at
   * the time of the decision (0: none yet). `handle-command.ts` and `ledger-queue.ts` are the only
   * callers. Events of several commands may share an append if none of the commands was tried
   * before: a repeated append is recognized by the first change's command only.
   */
  append(changes: readonly StreamAppend[]): Promise<AppendResult>;

  /**
   * All events of an aggregate, or those of some types, oldest first. Where no type comes twice,
   * which with `types` is so for most sessions, an adapter may read them much faster.
   * @throws WrittenByNewer
   */
  history<Kind extends AggregateKind>(
    aggregate: RefOf<Kind>,
    options?: HistoryOptions,
  ): AsyncIterable<RecordedOf<Kind>>;

  /**
   * The stored events of a range, oldest first, in batches of at most `batchMax` (default 500);
   * ends after the last of them, or when the signal aborts.
   * @throws Unavailable('event-log') if the store is silent for 5 s
   */
  read(range: ReadOptions): AsyncIterable<RecordedEvent[]>;

  /**
   * Events in the store's order, without gap or duplicate, until the signal aborts. Each batch
   * holds what has arrived, at most `batchMax` events (default 500). Survives reconnects and
   * restarts of the store.
   */
  subscribe(options: SubscribeOptions): AsyncIterable<RecordedEvent[]>;

  /**
   * Sequence of the newest event; 0 if none. It is never within the events of one append, which are
   * read together or not at all. There is no such question about some subjects only: a store
   * answers it by walking all subjects that match, which are the more the longer it is used.
   */
  lastSequence(): Promise<number>;

  /**
   * Sequence of the newest event that was stored before the time (ISO 8601 UTC), by the store's own
   * clock. If no event that is left was stored before it: `firstSequence` - 1, so 0 in a store that
   * was never truncated.
   */
  sequenceBefore(time: string): Promise<number>;

  /** The store's identity and length: data that was folded from another store must be discarded. */
  info(): Promise<EventStoreInfo>;
};

/**
 * `id` is unique to this store: a store that replaces it has another id. `firstSequence`: of the
 * oldest event that is left, 1 until the store is truncated (`truncation.ts`).
 */
export type EventStoreInfo = { id: string; firstSequence: number; lastSequence: number };

/** What `read` and `subscribe` have in common. */
type EventSelection = {
  subjects: readonly string[];
  batchMax?: number;
  /**
   * Optimisation for readers that need only the latest state. Called for an event that is
   * superseded by event `by` of the same aggregate in this batch, whose state can be read; return
   * true to skip decoding it. An adapter need not call it.
   */
  canSkip?: (sequence: number, by: number) => boolean;
  /**
   * Called for an event that cannot be decoded. It is in no batch; the subscription continues. If
   * the callback throws, the events before the unreadable one are still yielded, and then the
   * reader gets the error. Throw something else than `Unavailable`, which a subscription retries.
   */
  onUnreadable: (poison: UnreadableEvent) => void;
};

/**
 * An event that cannot be decoded. `unknown`: a newer version of the service wrote it, and a newer
 * process can read it. `malformed`: no process can.
 */
export type UnreadableEvent = {
  sequence: number;
  subject: string;
  reason: string;
  kind: 'unknown' | 'malformed';
};

export type ReadOptions = EventSelection & {
  /** Sequence after which to begin; default 0: the first event. */
  after?: number;
  /** Sequence of the last event; default, and at most: the newest event at the time of the call. */
  upTo?: number;
  /** Read archived events, too, if the store has an archive; without it they are left out. */
  includesArchive?: boolean;
  signal?: AbortSignal;
};

export type SubscribeOptions = EventSelection & {
  /** Sequence after which to begin; 0: all events; 'end': only events appended from now on. */
  after: number | 'end';
  signal: AbortSignal;
  /**
   * Called with the subscription's position: every matching event up to there has been yielded or
   * reported. It passes events that do not match, so that a position which was the store's end is
   * reached although no matching event follows. An adapter may call it with some delay.
   */
  onPosition?: (sequence: number) => void;
  /**
   * Called with false when the store stops sending, and with true at the first sign of life after
   * that, which need not be an event. An adapter need not call it.
   */
  onReceiving?: (isReceiving: boolean) => void;
};

/** The changes of one or more commands to one aggregate. `events` is never empty. */
export type StreamAppend = {
  aggregate: AggregateRef;
  expectedSequence: number;
  events: readonly PendingEvent[];
};

/**
 * - appended: stored; `sequences` in the order of the changes' events.
 * - duplicate: the store already holds these events (an earlier attempt whose answer was lost).
 * - conflict: an aggregate has changed since it was read; nothing was stored. With
 *   `outcomeUnknown`, an earlier answer was lost, and that append may still be stored later.
 */
export type AppendResult =
  | { outcome: 'appended'; sequences: number[] }
  | { outcome: 'duplicate' }
  | { outcome: 'conflict'; outcomeUnknown?: true };
