import type { Handoff } from '#events/handoff.ts';
import type { RefOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import {
  openSessions,
  organizationSessions,
  type SessionRow,
} from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import { pageMax } from '#projections/store/limits.ts';
import { readList } from '#projections/store/queries.ts';
import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
import { isOpenHandoff } from '#src/kernel/domain/session/handoff.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import { untilCurrent } from '#src/roles/api/sessions/read-model-freshness.ts';

/** The hand-offs of a session that an answer has: the newest. */
export const HANDOFFS_MAX = 100;

/** A session's hand-offs, newest first, folded from its events: its state has only the last. */
export async function handoffsOf(
  eventStore: Pick<EventStore, 'history'>,
  session: RefOf<'session'>,
): Promise<Handoff[]> {
  const handoffs = new BoundedMap<string, Handoff>(HANDOFFS_MAX);
  let state: SessionState | null = null;
  for await (const event of eventStore.history<'session'>(session)) {
    state = evolve<'session'>(session, state, event);
    if (state.handoff === undefined) continue;
    handoffs.set(state.handoff.id, state.handoff);
  }
  return [...handoffs.values()].toReversed();
}

/**
 * The open hand-offs of an organization, oldest first, from the read model. Only sessions that have
 * not ended are read: there are as many as the tier allows at most.
 * @throws Unavailable('read-model') if it is not current
 */
export async function openHandoffs(
  dependencies: Pick<ApiDependencies, 'views' | 'sessionEvents'>,
  organizationId: string,
): Promise<{ session: SessionState; handoff: Handoff }[]> {
  const { views } = dependencies;
  await Promise.all([
    untilCurrent(dependencies, organizationSessions),
    untilCurrent(dependencies, sessionView),
  ]);
  const list = openSessions(organizationId);
  const rows = await readList<SessionRow>(views, projectionId(organizationSessions), list);
  const found: { session: SessionState; handoff: Handoff }[] = [];
  for (let from = 0; from < rows.length; from += pageMax) {
    const page = rows.slice(from, from + pageMax).map(({ id }) => sessionKey(organizationId, id));
    for (const text of await views.readMany(projectionId(sessionView), page)) {
      // Most sessions have none, and their views need not be parsed.
      if (text === null || !text.includes('"handoff":')) continue;
      const session = JSON.parse(text) as SessionState;
      if (isOpenHandoff(session.handoff)) found.push({ session, handoff: session.handoff });
    }
  }
  return found.toSorted((a, b) => (a.handoff.requestedAt < b.handoff.requestedAt ? -1 : 1));
}
