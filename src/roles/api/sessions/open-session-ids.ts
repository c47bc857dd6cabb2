import { openSessions, organizationSessions } from '#projections/organization-sessions.ts';
import type { SessionRow } from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import { coalesce } from '#src/kernel/async/coalesce.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { ApiDependencies } from '../dependencies.ts';

/** The organization's open sessions, for a refusal; empty while the read model is unavailable. */
export type OpenSessionIds = (organizationId: string) => Promise<{ session_ids?: string[] }>;

/** The newest open sessions that a refusal names: 100 ids take 4 KB. */
const NAMED_MAX = 100;
/** How long a refusal waits for the list to hold all sessions that count. */
const LISTED_WITHIN_MS = 1_000;

/**
 * Refusals at the same time share one look at the list, which begins after all of them: a client
 * that creates in a loop costs one short page at a time.
 */
export function createOpenSessionIds({
  context,
  views,
}: Pick<ApiDependencies, 'context' | 'views'>): OpenSessionIds {
  const projection = projectionId(organizationSessions);
  const look = coalesce(async (organizationId) => {
    const newest = await context.eventStore.lastSequence();
    await views.waitForCheckpoint(projection, newest, LISTED_WITHIN_MS);
    const lists = [openSessions(organizationId)];
    const { items } = await views.page(projection, { lists, offset: 0, limit: NAMED_MAX });
    const open = JSON.parse(`[${items}]`) as SessionRow[];
    return { session_ids: open.map(({ id }) => id) };
  });
  return async (organizationId) => {
    if (!views.isReachable()) return {};
    try {
      return await look(organizationId);
    } catch (error) {
      // While the read model is unavailable or rebuilt, the request is rejected all the same.
      if (error instanceof Unavailable) return {};
      throw error;
    }
  };
}
