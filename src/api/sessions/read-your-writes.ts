import { organizationSessions } from '#projections/organization-sessions.ts';
import { idOf } from '#projections/projection.ts';
import { sessionView } from '#projections/session-view.ts';
import type { Views } from '#projections/store/views.ts';
import type { Tail } from '#src/event-store/session-events.ts';
import { Unavailable } from '#src/errors.ts';

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

/** How long a read waits for the read model to hold all that this process has seen. */
export const CURRENT_WITHIN_MS = 1_000;

/**
 * Resolves once a projection of sessions holds all of them that this process has seen.
 * @throws Unavailable('read-model') where it does not in time: an old answer must not pass for one
 */
export async function untilCurrent(
  { views, tail }: { views: Views; tail: Pick<Tail, 'position'> },
  projection: Parameters<typeof idOf>[0],
): Promise<void> {
  const isCurrent = await views.reached(idOf(projection), tail.position(), CURRENT_WITHIN_MS);
  if (!isCurrent) throw catchingUp();
}

export function catchingUp(): Unavailable {
  return new Unavailable('read-model', new Error('the read model is catching up'));
}
