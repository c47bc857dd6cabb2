import type { FastifyRequest } from 'fastify';
import type { Metrics } from '#src/telemetry/metrics.ts';
import { arrivedAt } from '../http/admission.ts';
import { spanOf } from '../http/trace-requests.ts';
import type { watchOutcome } from './watch-outcome.ts';

type Outcome = Pick<ReturnType<typeof watchOutcome>, 'moments'>;

/**
 * Takes the time of a create's phases, from the moment it is called: for the metrics, and as parts
 * of the request's span where it has one.
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
    /** Its events are in the log; false: they were before. */
    accepted(isChanged: boolean, sessionId: string): void {
      acceptedAt = performance.now();
      appending?.end();
      span?.note({ 'bss.session_id': sessionId });
      waiting = span?.begin('wait for browser');
      if (!isChanged) return;
      metrics.createPhase('admission', startedAt - arrivedAt(request));
      metrics.createPhase('append', acceptedAt - startedAt);
    },
    /** It has its browser, has ended, or waits no more; whatever is known of the phases by now. */
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
    /** What its answer says of it; milliseconds. */
    timing: () => ({ startedAt, acceptedAt }),
  };
}
