import { projectionId } from '#projections/projection.ts';
import type { Views } from '#projections/store/views.ts';
import type { SessionEvents } from '#src/event-store/session-events.ts';
import { Unavailable } from '#src/errors.ts';

/** How long a read waits for the read model to hold all that this process has seen. */
export const CURRENT_WITHIN_MS = 1_000;

/**
 * Resolves once a projection of sessions holds all events that this process has seen.
 * @throws Unavailable('read-model') if it does not in time: the answer would be stale
 */
export async function untilCurrent(
  { views, sessionEvents }: { views: Views; sessionEvents: Pick<SessionEvents, 'position'> },
  projection: Parameters<typeof projectionId>[0],
): Promise<void> {
  const isCurrent = await views.waitForCheckpoint(
    projectionId(projection),
    sessionEvents.position(),
    CURRENT_WITHIN_MS,
  );
  if (!isCurrent) throw catchingUp();
}

export function catchingUp(): Unavailable {
  return new Unavailable('read-model', new Error('the read model is catching up'));
}
