import type { SessionState } from '#events/session.ts';
import type { Tail } from '#src/event-store/session-events.ts';

/** A session as of one of its events. */
export type Seen = { state: SessionState; sequence: number };

/**
 * Watches a session from before it is asked for, so that no event of it is missed.
 * `settled` resolves with the newest state seen, once it waits no more for its browser (active, or
 * ended) or the time is up.
 */
export function watchOutcome(tail: Tail, sessionId: string) {
  let newest: Seen | null = null;
  let wake: (() => void) | null = null;
  let assignedAt: number | null = null;
  let activatedAt: number | null = null;
  let activatedBy: string | null = null;
  const unwatch = tail.watch(sessionId, ({ type, state, sequence, cause }) => {
    newest = { state, sequence };
    if (type === 'session.assigned') assignedAt = performance.now();
    if (type === 'session.activated') {
      activatedAt = performance.now();
      activatedBy = cause.traceparent ?? null;
    }
    if (isSettled(state)) wake?.();
  });

  async function settled(accepted: Seen, waitMs: number): Promise<Seen> {
    const seen = () => (newest !== null && newest.sequence > accepted.sequence ? newest : accepted);
    if (isSettled(seen().state) || waitMs === 0) return seen();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    return seen();
  }
  /**
   * cold: a browser was launched for it, as it asked for one or where none waited; warm: it has one
   * that waited; null: it has none yet, or had it before.
   */
  function start(): 'cold' | 'warm' | null {
    if (newest?.state.status !== 'active') return null;
    return assignedAt === null ? 'warm' : 'cold';
  }
  /**
   * When a server took it and when it had its browser, by performance.now(), and the trace of the
   * latter; null: not yet, or not known.
   */
  const moments = () => ({ assignedAt, activatedAt, activatedBy });
  return { settled, start, moments, [Symbol.dispose]: unwatch };
}

function isSettled({ status }: SessionState): boolean {
  return status !== 'creating' && status !== 'queued';
}
