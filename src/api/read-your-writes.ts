import { organizationSessions } from '#projections/organization-sessions.ts';
import { idOf } from '#projections/projection.ts';
import { sessionView } from '#projections/session-view.ts';
import type { Views } from '#projections/views.ts';

/**
 * The longest a command's answer waits for its effect to be readable; the effect itself is durable.
 */
const READABLE_WITHIN_MS = 1_000;

/**
 * Waits until a session's event shows in single reads and lists, so that whoever has the answer of
 * a command sees its effect, through whichever API process. Not while the read model is away.
 */
export async function untilReadable(views: Views, sequence: number): Promise<void> {
  if (!views.isReachable()) return;
  await Promise.all(
    [sessionView, organizationSessions].map((projection) =>
      views.reached(idOf(projection), sequence, READABLE_WITHIN_MS),
    ),
  );
}
