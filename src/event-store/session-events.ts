import { isOf, type RecordedOf } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import { keepTrying } from '#src/async/back-off.ts';
import type { EventLog } from './event-store.ts';
import type { Recent } from './state-cache.ts';

type SessionRecorded = RecordedOf<'session'>;
type Listener = (event: SessionRecorded) => void;

/** Watches the session events of one process's log follower, however many listeners there are. */
export type Tail = {
  /**
   * Calls the listener for each event of that session from now on, until the returned function is
   * called.
   */
  watch(sessionId: string, listener: Listener): () => void;
  /** Calls the listener for every session event from now on. */
  watchAll(listener: Listener): () => void;
  /** Sequence of the newest session event seen. */
  position(): number;
} & AsyncDisposable;

/**
 * Follows the sessions from here on. Resolves once it stands at the end of the log, so that nothing
 * appended afterwards is missed. A listener that throws is reported and does not stop the others; a
 * failure to follow is reported, and followed by another try behind the last event that came.
 * @param recent is kept up to date by it: the sessions, and the ledgers that move with them
 */
export async function startTail(
  log: EventLog,
  onError: (error: unknown, what: string) => void,
  recent?: Recent,
): Promise<Tail> {
  const bySession = new Map<string, Set<Listener>>();
  const everyone = new Set<Listener>();
  const stop = new AbortController();
  let position = await log.lastSequence(filters.sessions);
  let after = position;

  function deliver(event: SessionRecorded): void {
    position = event.sequence;
    for (const listener of [...everyone, ...(bySession.get(event.aggregate.id) ?? [])]) {
      try {
        listener(event);
      } catch (error) {
        onError(error, 'a listener of the tail failed');
      }
    }
  }

  async function run(wentWell: () => void): Promise<void> {
    const batches = log.follow({
      subjects: filters.ledgersAndSessions,
      after,
      signal: stop.signal,
      onMalformed: (poison) => onError(new Error(poison.reason), `malformed ${poison.subject}`),
    });
    for await (const batch of batches)
      for (const event of batch) {
        after = event.sequence;
        wentWell();
        recent?.saw(event);
        if (isOf('session', event)) deliver(event);
      }
  }
  const running = keepTrying(stop.signal, run, (error) =>
    onError(error, 'the sessions are not followed; trying again'),
  );

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
