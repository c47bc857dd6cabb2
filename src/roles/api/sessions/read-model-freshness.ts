import { organizationSessions } from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import type { Page, PageQuery, Views } from '#projections/store/views.ts';
import type { SessionEvents } from '#src/kernel/event-store/session-events.ts';
import { Unavailable } from '#src/kernel/errors.ts';

/** How long a read waits for the read model to hold all that this process has seen. */
const CURRENT_WITHIN_MS = 1_000;

type ReadModel = { views: Views; sessionEvents: Pick<SessionEvents, 'position'> };

/**
 * Resolves once a projection of sessions holds all events that this process has seen.
 * @throws Unavailable('read-model') if it does not in time: the answer would be stale
 */
export async function untilCurrent(
  { views, sessionEvents }: ReadModel,
  projection: Parameters<typeof projectionId>[0],
): Promise<void> {
  const isCurrent = await views.waitForCheckpoint(
    projectionId(projection),
    sessionEvents.position(),
    CURRENT_WITHIN_MS,
  );
  if (!isCurrent) throw catchingUp();
}

/**
 * A page that holds every event this process has seen; lists never step back, not even in a
 * rebuild.
 * @throws Unavailable('read-model') if it does not in time
 */
export async function currentPage(
  { views, sessionEvents }: ReadModel,
  query: PageQuery,
): Promise<Page> {
  const id = projectionId(organizationSessions);
  const seen = sessionEvents.position();
  const page = await views.page(id, query);
  if (page.checkpoint >= seen) return page;
  const later = (await views.waitForCheckpoint(id, seen, CURRENT_WITHIN_MS))
    ? await views.page(id, query)
    : page;
  if (later.checkpoint >= seen) return later;
  throw catchingUp();
}

function catchingUp(): Unavailable {
  return new Unavailable('read-model', new Error('the read model is catching up'));
}
