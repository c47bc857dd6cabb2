import { isOf, type EventWithState, type RecordedOf } from '#events/events.ts';
import { filters, parseSubject, type AggregateRef } from '#events/subjects.ts';
import { isOutage } from '#src/kernel/errors.ts';
import { keepTrying } from '#src/kernel/async/back-off.ts';
import type { EventStore } from './event-store.ts';
import { withState } from './load-state.ts';
import type { StateCache } from './state-cache.ts';

type Listener = (event: EventWithState<'session'>) => void;

/** Passes the session events of one process's subscription to any number of listeners. */
export type SessionEvents = {
  /**
   * Calls the listener for each further event of that session, until the returned function is
   * called.
   */
  watch(sessionId: string, listener: Listener): () => void;
  /** Calls the listener for every further session event. */
  watchAll(listener: Listener): () => void;
  /**
   * Sequence of the newest session event received; before the first one, where it subscribed.
   */
  position(): number;
} & AsyncDisposable;

/**
 * Subscribes to the session events from the end of the event store. Resolves once that position is
 * known, so that no later event is missed. A listener that throws is reported and does not stop the
 * others. If the subscription fails, the failure is reported, and it is opened again after the last
 * event received.
 * @param stateCache gets the states of sessions, and of the ledgers that change with them
 */
export async function subscribeToSessions(
  eventStore: EventStore,
  onError: (error: unknown, what: string) => void,
  stateCache?: StateCache,
): Promise<SessionEvents> {
  const bySession = new Map<string, Set<Listener>>();
  const everyone = new Set<Listener>();
  const stop = new AbortController();
  let position = await eventStore.lastSequence();
  let after = position;

  function deliver(event: EventWithState<'session'>): void {
    position = event.sequence;
    for (const listener of [...everyone, ...(bySession.get(event.aggregate.id) ?? [])]) {
      try {
        listener(event);
      } catch (error) {
        onError(error, 'a listener for session events failed');
      }
    }
  }

  /**
   * Listeners need the state: if the event was written with another state version, the history is
   * folded. Null if the history cannot be read, which is reported like an unreadable event. Nothing
   * is lost by it: each listener has another way to learn of a session's end, and commands read the
   * event store.
   */
  async function readState(event: RecordedOf<'session'>) {
    try {
      return await withState<'session'>(eventStore, event);
    } catch (error) {
      if (isOutage(error)) throw error;
      forget(stateCache, event.aggregate);
      onError(error, `the history of session ${event.aggregate.id} is unreadable; event skipped`);
      return null;
    }
  }

  async function run(wentWell: () => void): Promise<void> {
    const batches = eventStore.subscribe({
      subjects: filters.ledgersAndSessions,
      after,
      signal: stop.signal,
      onUnreadable({ subject, kind, reason }) {
        onError(new Error(reason), `${kind} event ${subject} passed`);
        forget(stateCache, parseSubject(subject)?.aggregate);
      },
    });
    for await (const batch of batches)
      for (const event of batch) {
        const known = isOf('session', event) ? await readState(event) : event;
        after = event.sequence;
        wentWell();
        if (known === null) continue;
        stateCache?.observe(known);
        if (isOf('session', known)) deliver(known);
      }
  }
  const onFailure = (error: unknown) => onError(error, 'following session events failed; retrying');
  const running = keepTrying(stop.signal, run, onFailure);

  function watch(sessionId: string, listener: Listener): () => void {
    const listeners = bySession.get(sessionId) ?? new Set();
    bySession.set(sessionId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) bySession.delete(sessionId);
    };
  }
  function watchAll(listener: Listener): () => void {
    everyone.add(listener);
    return () => everyone.delete(listener);
  }
  async function dispose(): Promise<void> {
    stop.abort();
    await running;
  }
  return { watch, watchAll, position: () => position, [Symbol.asyncDispose]: dispose };
}

/** What was known of an aggregate before an event that cannot be read is outdated. */
function forget(stateCache: StateCache | undefined, aggregate: AggregateRef | undefined): void {
  if (aggregate !== undefined) stateCache?.delete(aggregate);
}
