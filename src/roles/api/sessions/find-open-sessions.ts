import type { SessionFilter } from '#events/organization.ts';
import {
  openSessions,
  sessionLists,
  sessionsOfUser,
  sessionsWithLabel,
  type SessionRow,
} from '#projections/organization-sessions.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { stoppable, type Stoppable } from '../schemas/stop-sessions.ts';
import { currentPage } from './read-model-freshness.ts';

/** Rows of one look at the read model: some 250 KB. */
const ROWS = 1_000;

/**
 * The ids of the organization's open sessions that match, newest first; those that are stopping are
 * left out. The tier's limit of concurrent sessions bounds the look.
 * @throws Unavailable('read-model') if it is behind what this process has seen
 */
export async function findOpenSessions(
  { views, sessionEvents }: Pick<ApiDependencies, 'views' | 'sessionEvents'>,
  organizationId: string,
  filter: SessionFilter & { status?: Stoppable },
): Promise<string[]> {
  const lists = listsOf(organizationId, filter);
  const before = filter.createdBefore === undefined ? Infinity : Date.parse(filter.createdBefore);
  const words: readonly string[] = stoppable;
  const found = new Set<string>();
  for (let offset = 0, total = 1; offset < total; offset += ROWS) {
    const page = await currentPage({ views, sessionEvents }, { lists, offset, limit: ROWS });
    total = page.total;
    const rows = JSON.parse(`[${page.items}]`) as SessionRow[];
    for (const { id, status, created_at } of rows)
      if (words.includes(status) && Date.parse(created_at) < before) found.add(id);
  }
  return [...found];
}

function listsOf(
  organizationId: string,
  { status, labels = {}, userId }: SessionFilter & { status?: Stoppable },
): string[] {
  const pairs = Object.entries(labels);
  if (status !== undefined) return sessionLists(organizationId, status, pairs, userId);
  const labelled = pairs.map(([name, value]) => sessionsWithLabel(organizationId, name, value));
  const ofUser = userId === undefined ? [] : [sessionsOfUser(organizationId, userId)];
  return [openSessions(organizationId), ...labelled, ...ofUser];
}
