import type { SessionState } from '#events/session.ts';
import { within } from '#src/kernel/async/timeout.ts';
import { isSettled } from '#src/kernel/domain/session/session.ts';
import type { SessionEvents } from '#src/kernel/event-store/session-events.ts';

/** A session as of one of its events. */
export type Seen = { state: SessionState; sequence: number };

/**
 * Watches a session from before its request is appended, so that no event of it is missed.
 * `settled` resolves with the newest state seen, once the session no longer waits for its browser
 * (it is active or has ended), the time is up or the signal aborts.
 */
export function watchSession(sessionEvents: SessionEvents, sessionId: string) {
  let newest: Seen | null = null;
  let wake: (() => void) | null = null;
  let assignedAt: number | null = null;
  let activatedAt: number | null = null;
  let activatedBy: string | null = null;
  const unwatch = sessionEvents.watch(sessionId, ({ type, state, sequence, metadata }) => {
    newest = { state, sequence };
    if (type === 'session.assigned') assignedAt = performance.now();
    if (type === 'session.activated') {
      activatedAt = performance.now();
      activatedBy = metadata.traceparent ?? null;
    }
    if (isSettled(state)) wake?.();
  });

  async function settled(accepted: Seen, waitMs: number, signal?: AbortSignal): Promise<Seen> {
    const seen = () => (newest !== null && newest.sequence > accepted.sequence ? newest : accepted);
    if (isSettled(seen().state) || waitMs === 0 || signal?.aborted) return seen();
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => resolve();
    wake = end;
    signal?.addEventListener('abort', end);
    await within(waitMs, promise, () => undefined);
    signal?.removeEventListener('abort', end);
    return seen();
  }
  /**
   * cold: a browser was launched for the session, because of its options or because none was idle;
   * warm: it got an idle one; null: it has none yet, or had it before.
   */
  function start(): 'cold' | 'warm' | null {
    if (newest?.state.status !== 'active') return null;
    return assignedAt === null ? 'warm' : 'cold';
  }
  /**
   * When a server accepted the session and when it got its browser, by performance.now(), and the
   * trace of the latter; null: not yet, or unknown.
   */
  const moments = () => ({ assignedAt, activatedAt, activatedBy });
  return { settled, start, moments, [Symbol.dispose]: unwatch };
}
