import { organizationSessions } from '#projections/organization-sessions.ts';
import { profiles } from '#projections/profiles.ts';
import { projectionId } from '#projections/projection.ts';
import { sessionView } from '#projections/session-view.ts';
import type { Views } from '#projections/store/views.ts';

/**
 * The longest a command's answer waits for its effect to be readable; the effect itself is durable.
 */
const READABLE_WITHIN_MS = 1_000;

/**
 * Waits until a session's event shows in single reads and lists, so that the caller sees the
 * command's effect through every API process. Does not wait while the read model is unavailable.
 */
export async function untilReadable(views: Views, sequence: number): Promise<void> {
  if (!views.isReachable()) return;
  await Promise.all(
    [sessionView, organizationSessions].map((projection) =>
      views.waitForCheckpoint(projectionId(projection), sequence, READABLE_WITHIN_MS),
    ),
  );
}

/** The same for an event of a profile. */
export async function untilProfileReadable(views: Views, sequence: number): Promise<void> {
  if (!views.isReachable()) return;
  await views.waitForCheckpoint(projectionId(profiles), sequence, READABLE_WITHIN_MS);
}
