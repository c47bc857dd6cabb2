import type { ServerState } from '#events/server.ts';
import type { SessionState } from '#events/session.ts';
import { organizationSessions, waitingSessions } from '#projections/organization-sessions.ts';
import type { SessionRow } from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import { currentServers, servers } from '#projections/servers.ts';
import { sessionsOnServer, sessionView } from '#projections/session-view.ts';
import { pageMax } from '#projections/store/limits.ts';
import { readList } from '#projections/store/queries.ts';
import type { Views } from '#projections/store/views.ts';
import { endsAt } from '#src/kernel/domain/session/ends-at.ts';

/** A session that time should have ended this long ago, and that has not ended, is overdue. */
const LATE_MS = 60_000;
/** The count reads all open sessions, so it is made at most this often. */
const FRESH_MS = 30_000;

/**
 * Counts the sessions that their expiry, idle timeout or queue timeout should have ended more than
 * a minute ago, by the read model. It needs no timekeeper. The open sessions of all organizations
 * are those that wait for a server and those of the current servers; they are read page by page.
 */
export function createOverdueCounter(parts: {
  views: Views;
  now: () => number;
  queueTimeoutMs: number;
}): () => Promise<number> {
  let last: { count: Promise<number>; at: number } | null = null;
  return () => {
    if (last !== null && performance.now() - last.at < FRESH_MS) return last.count;
    const current = { count: countOverdue(parts), at: performance.now() };
    last = current;
    // A failed count is not kept.
    current.count.catch(() => {
      if (last === current) last = null;
    });
    return current.count;
  };
}

/** @throws Unavailable('read-model') */
async function countOverdue({
  views,
  now,
  queueTimeoutMs,
}: Parameters<typeof createOverdueCounter>[0]): Promise<number> {
  const isLate = (at: number | null) => at !== null && at + LATE_MS < now();
  const isLateRow = ({ created_at, expires_at }: SessionRow) =>
    isLate(Math.min(Date.parse(created_at) + queueTimeoutMs, Date.parse(expires_at)));
  const waiting = { projection: projectionId(organizationSessions), list: waitingSessions };
  let count = await countOf(views, waiting, isLateRow);
  for (const { id } of await readList<ServerState>(views, projectionId(servers), currentServers)) {
    const running = { projection: projectionId(sessionView), list: sessionsOnServer(id) };
    count += await countOf(views, running, (session: SessionState) =>
      isLate(endsAt(session, queueTimeoutMs)),
    );
  }
  return count;
}

async function countOf(
  views: Views,
  { projection, list }: { projection: string; list: string },
  isOverdue: ((row: SessionRow) => boolean) | ((session: SessionState) => boolean),
): Promise<number> {
  let count = 0;
  for (let offset = 0, total = 1; offset < total; offset += pageMax) {
    const page = await views.page(projection, { lists: [list], offset, limit: pageMax });
    const found = JSON.parse(`[${page.items}]`) as (SessionRow & SessionState)[];
    count += found.filter(isOverdue).length;
    total = page.total;
  }
  return count;
}
