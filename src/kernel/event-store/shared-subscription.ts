import { filters, subjectMatcher } from '#events/subjects.ts';
import type { RecordedEvent } from '#events/events.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { createBackOff } from '#src/kernel/async/back-off.ts';
import { createNotifier, type Notifier } from '#src/kernel/async/notifier.ts';
import type { EventStore, SubscribeOptions, UnreadableEvent } from './event-store.ts';
import { createRecentEvents, type RecentEvents } from './newest-events.ts';

/**
 * An event store whose subscriptions at its end share one reader. Disposing ends the reader and the
 * subscriptions.
 */
export type SharedSubscriptionStore = EventStore & {
  /** False once the shared reader has received nothing for 3 s: its subscribers get no events. */
  isReceiving(): boolean;
  /** Time since the shared reader's last sign of life: events, or a heartbeat every 2 s. */
  silenceMs: () => number;
} & AsyncDisposable;

export type SharedSubscriptionOptions = {
  /** What its subscribers may ask for; default: all events. */
  subjects?: readonly string[];
  /** Newest events that are kept, at least; default 5,000. */
  keptMin?: number;
  /** How long the reader may receive nothing before `isReceiving` is false; default 3 s. */
  silentAfterMs?: number;
  /** Called at each failed read that is not an outage; the read is tried again. */
  onFailure?: (error: unknown, what: string) => void;
};

/**
 * A subscriber that falls behind the newest events that are kept reads the store with a reader of
 * its own.
 */
const KEPT_MIN = 5_000;
/**
 * A lost reader is replaced within milliseconds. But if no events are appended, its first sign of
 * life, a heartbeat, comes only 2 s later, and `isReceiving` stays true until then.
 */
const SILENT_AFTER_MS = 3_000;
/** Pause before the next attempt when the event store does not return its last sequence. */
const AWAY_MS = 250;

/**
 * Lets all subscriptions of one process read the end of the event store through one reader: each
 * event is received once and decoded once, however many subscribers there are. Each subscriber has
 * its own position among the newest events, which are kept here. One whose position is older
 * catches up with a reader of its own and then joins. The events are shared between subscribers and
 * must not be changed.
 *
 * The reader's subjects bound what a process receives: each server of a fleet would otherwise
 * decode the events of all others' browsers. A subscription to other subjects throws RangeError.
 *
 * Subscriptions never end by themselves. Whatever the store answers (a stream that a starting
 * server does not know yet, a permission that is missing for a moment), the reader tries again
 * after the last event received, 100 ms later at first and every 5 s at last: no event is missed or
 * doubled. If one error ended the reader, the process would never again learn of a revoked key or
 * an ended session.
 */
export async function withSharedSubscription(
  eventStore: EventStore,
  {
    subjects = filters.all,
    keptMin = KEPT_MIN,
    silentAfterMs = SILENT_AFTER_MS,
    onFailure = () => undefined,
  }: SharedSubscriptionOptions = {},
): Promise<SharedSubscriptionStore> {
  const stop = new AbortController();
  const notifier = createNotifier();
  const newest = createRecentEvents(await eventStore.lastSequence(), keptMin);
  const isFollowed = subjectMatcher(subjects);
  const reader = startReader(eventStore, {
    subjects,
    newest,
    notifier,
    silentAfterMs,
    signal: stop.signal,
    onFailure,
  });

  async function* follow(options: SubscribeOptions): AsyncGenerator<RecordedEvent[], void, void> {
    const unread = options.subjects.filter((wanted) => !isFollowed(wanted));
    if (unread.length > 0)
      throw new RangeError(`this process does not follow the events of ${unread.join(', ')}`);
    const signal = AbortSignal.any([options.signal, stop.signal]);
    let after: number | null = options.after === 'end' ? null : options.after;
    while (!signal.aborted) {
      if (after === null) {
        after = await endOf(eventStore, signal, onFailure);
      } else if (after < newest.keptAfter()) {
        after = yield* catchUp(
          eventStore,
          { ...options, signal },
          after,
          newest.keptAfter(),
          onFailure,
        );
      } else {
        const { batch, place } = newest.take(after, options);
        after = place;
        if (batch.length > 0) yield batch;
        options.onPosition?.(after);
        if (!newest.hasAfter(after)) await notifier.wait(signal);
      }
    }
  }
  return {
    ...eventStore,
    subscribe: follow,
    isReceiving: reader.isReceiving,
    silenceMs: reader.silenceMs,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await reader.ended;
    },
  };
}

/**
 * Reads the end of the event store into the newest events until the signal aborts, despite
 * failures.
 */
function startReader(
  eventStore: EventStore,
  parts: {
    subjects: readonly string[];
    newest: RecentEvents;
    notifier: Notifier;
    silentAfterMs: number;
    signal: AbortSignal;
    onFailure: OnFailure;
  },
): { isReceiving: () => boolean; silenceMs: () => number; ended: Promise<void> } {
  const { subjects, newest, notifier, silentAfterMs, signal, onFailure } = parts;
  const backOff = createBackOff();
  /** When the first sign of life was missed; null while the reader gets some. */
  let silentSince: number | null = null;
  let heardAt = performance.now();
  /** Unreadable events whose batch has not arrived yet. */
  let poisons: UnreadableEvent[] = [];

  /**
   * Add events and unreadable events in one step; a reader that saw only the events would skip the
   * unreadable ones.
   */
  function keep(batch: readonly RecordedEvent[]): void {
    newest.keep(batch, poisons);
    poisons = [];
    notifier.notify();
  }
  function keepAlone(): void {
    if (poisons.length > 0) keep([]);
  }
  function onReceiving(isHeard: boolean): void {
    silentSince = isHeard ? null : (silentSince ?? performance.now());
    if (!isHeard) return;
    heardAt = performance.now();
    backOff.reset();
  }
  async function read(): Promise<void> {
    const batches = eventStore.subscribe({
      subjects,
      after: newest.end(),
      signal,
      onReceiving,
      onUnreadable(poison) {
        poisons.push(poison);
        // The batch of an unreadable event, if there is one, arrives before this callback runs.
        if (poisons.length === 1) setImmediate(keepAlone);
      },
    });
    for await (const batch of batches) {
      keep(batch);
      onReceiving(true);
    }
    if (!signal.aborted) throw new Error('the subscription to the event store ended unexpectedly');
  }
  async function readOn(): Promise<void> {
    while (!signal.aborted) {
      try {
        await read();
      } catch (error) {
        // Unreadable events that are not kept yet are read again.
        poisons = [];
        onReceiving(false);
        onFailure(error, 'this process receives no events from the event store; retrying');
        await backOff.pause(signal);
      }
    }
  }
  const isReceiving = () => silentSince === null || performance.now() - silentSince < silentAfterMs;
  const silenceMs = () => performance.now() - heardAt;
  return { isReceiving, silenceMs, ended: readOn().finally(() => notifier.notify()) };
}

type OnFailure = NonNullable<SharedSubscriptionOptions['onFailure']>;

/**
 * Yields the events older than those that are kept; returns the position from which the shared
 * reader takes over.
 * @param kept events after it are kept, unless so many arrive meanwhile that it has been dropped
 */
async function* catchUp(
  eventStore: EventStore,
  options: SubscribeOptions & { signal: AbortSignal },
  after: number,
  kept: number,
  onFailure: OnFailure,
): AsyncGenerator<RecordedEvent[], number, void> {
  const { signal } = options;
  const backOff = createBackOff();
  let place = after;
  /**
   * Unreadable events up to here were reported. `refused`: the error that the subscriber's callback
   * threw.
   */
  let reportedUpTo = after;
  let refused: { error: unknown } | null = null;
  const onUnreadable: SubscribeOptions['onUnreadable'] = (poison) => {
    if (poison.sequence <= reportedUpTo) return;
    reportedUpTo = poison.sequence;
    try {
      options.onUnreadable(poison);
    } catch (error) {
      refused = { error };
      throw error;
    }
  };
  while (!signal.aborted) {
    try {
      const range = { ...options, after: place, upTo: kept, onUnreadable };
      for await (const batch of eventStore.read(range)) {
        place = Math.max(place, batch.at(-1)?.sequence ?? 0);
        backOff.reset();
        yield batch;
      }
      return signal.aborted ? place : kept;
    } catch (error) {
      if (refused !== null) throw (refused as { error: unknown }).error;
      if (!(error instanceof Unavailable))
        onFailure(error, 'reading older events failed; retrying');
      await backOff.pause(signal);
    }
  }
  return place;
}

/** The store's last sequence, asked until the store answers; null: the signal aborted. */
async function endOf(
  eventStore: EventStore,
  signal: AbortSignal,
  onFailure: OnFailure,
): Promise<number | null> {
  const backOff = createBackOff();
  while (!signal.aborted) {
    try {
      return await eventStore.lastSequence();
    } catch (error) {
      if (error instanceof Unavailable) {
        await sleep(AWAY_MS, signal);
      } else {
        onFailure(error, 'reading the last sequence of the event store failed; retrying');
        await backOff.pause(signal);
      }
    }
  }
  return null;
}
