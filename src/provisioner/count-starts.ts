import type { Tail } from '../event-store/session-events.ts';
import { isFinal } from '../domain/session/session.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/**
 * Counts the sessions that get a browser of this server, by what the log says: one that was
 * assigned beforehand waited for a launch. Until the function it returns is called.
 */
export function countStarts(
  tail: Tail,
  serverId: string,
  metrics: Pick<Metrics, 'sessionStarted'>,
): () => void {
  // Each leaves it with its next word: as many as wait for a launch.
  const assigned = new Set<string>();
  return tail.watchAll(({ type, state }) => {
    if (type === 'session.assigned' && state.assignment?.serverId === serverId)
      assigned.add(state.id);
    const isOver = type === 'session.requeued' || isFinal(state.status);
    if (isOver || state.status === 'stopping') assigned.delete(state.id);
    if (type !== 'session.activated' || state.workload?.serverId !== serverId) return;
    metrics.sessionStarted(assigned.delete(state.id) ? 'cold' : 'warm');
  });
}
