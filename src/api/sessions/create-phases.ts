import type { FastifyRequest } from 'fastify';
import type { Metrics } from '#src/telemetry/metrics.ts';
import { arrivedAt } from '../http/admission.ts';
import { spanOf } from '../http/trace-requests.ts';
import type { watchOutcome } from './watch-outcome.ts';

type Outcome = Pick<ReturnType<typeof watchOutcome>, 'moments'>;

/**
 * Measures the phases of a create, from the moment of the call: for the metrics, and as children of
 * the request's span if it has one.
 */
export function takeCreatePhases(
  metrics: Pick<Metrics, 'createPhase'>,
  request: FastifyRequest,
  outcome: Outcome,
) {
  const span = spanOf(request);
  const startedAt = performance.now();
  let acceptedAt = startedAt;
  const appending = span?.begin('append session.requested');
  let waiting: typeof appending;
  return {
    /** The session's events are stored; false: they were stored before. */
    accepted(isChanged: boolean, sessionId: string): void {
      acceptedAt = performance.now();
      appending?.end();
      span?.note({ 'bss.session_id': sessionId });
      waiting = span?.begin('wait for browser');
      if (!isChanged) return;
      metrics.createPhase('admission', startedAt - arrivedAt(request));
      metrics.createPhase('append', acceptedAt - startedAt);
    },
    /** The session has its browser, has ended, or waits no more; with the phases known by now. */
    settled(isChanged: boolean): void {
      const { assignedAt, activatedAt, activatedBy } = outcome.moments();
      if (activatedBy !== null) waiting?.link(activatedBy);
      waiting?.end();
      if (!isChanged) return;
      const placedAt = assignedAt ?? activatedAt;
      if (placedAt !== null) metrics.createPhase('placement', placedAt - acceptedAt);
      if (assignedAt !== null && activatedAt !== null)
        metrics.createPhase('launch', activatedAt - assignedAt);
    },
    /** The phases for the answer's header, in milliseconds. */
    timing: () => ({ startedAt, acceptedAt }),
  };
}
