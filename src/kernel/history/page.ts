import { isOf, type RecordedOf, type RefOf } from '#events/events.ts';
import { isPublic } from '#events/public-event.ts';
import type { SessionState } from '#events/session.ts';
import { streamFilter } from '#events/subjects.ts';
import { evolve } from '#src/kernel/domain/session/session.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { refuseUnreadable } from '#src/kernel/event-store/unreadable.ts';

/** An event of a session with the states before and after it. */
export type Step = {
  event: RecordedOf<'session'>;
  before: SessionState | null;
  state: SessionState;
  /** The event that caused it, if that is one of the session. */
  cause: Cause | null;
};
type Cause = { sequence: number; type: string };

type Range = { after: number; upTo: number; signal?: AbortSignal | undefined };

/** A page of a session's history; `next` is the sequence to go on from, null on the last page. */
export type HistoryPage = { steps: Step[]; next: number | null };

/**
 * The session's events after a sequence that organizations get, oldest first, at most `limit`. Only
 * the page is held in memory.
 * @param range.upTo the session's last event
 * @param range.signal once it aborts, the page may lack events
 * @throws WrittenByNewer
 */
export async function readPage(
  eventStore: EventStore,
  session: RefOf<'session'>,
  { after, upTo, limit, signal }: Range & { limit: number },
): Promise<HistoryPage> {
  let state = after === 0 ? null : (await loadState(eventStore, session, { upTo: after })).state;
  const steps: Step[] = [];
  let isMore = false;
  for await (const event of eventsAfter(eventStore, session, { after, upTo, signal })) {
    if (signal?.aborted === true) break;
    const before: SessionState | null = state;
    state = event.state ?? evolve(before, event, session);
    if (!isPublic(event.type)) continue;
    if (steps.length === limit) {
      isMore = true;
      break;
    }
    steps.push({ event, before, state, cause: null });
  }
  await nameCauses(eventStore, session, steps);
  return { steps, next: isMore ? (steps.at(-1)?.event.sequence ?? null) : null };
}

/** From the first event on there is a cheaper way for most sessions. */
async function* eventsAfter(
  eventStore: EventStore,
  session: RefOf<'session'>,
  { after, upTo, signal }: Range,
): AsyncGenerator<RecordedOf<'session'>, void, void> {
  if (after === 0) {
    yield* eventStore.history<'session'>(session);
    return;
  }
  if (after >= upTo) return;
  const subjects = [streamFilter(session)];
  const options = { subjects, includesArchive: true, onUnreadable: refuseUnreadable };
  const range = { after, upTo, ...(signal && { signal }) };
  for await (const batch of eventStore.read({ ...options, ...range }))
    for (const event of batch) if (isOf('session', event)) yield event;
}

/** Types of events that cause others of the session. */
const causing = new Set(['session.requested', 'session.requeued', 'session.stop-requested']);

/** The causes of the page's events, most of which are on the page or are the first events. */
async function nameCauses(
  eventStore: EventStore,
  session: RefOf<'session'>,
  steps: readonly Step[],
): Promise<void> {
  const byId = new Map<string, Cause>(steps.map(({ event }) => [event.id, event]));
  const wanted = new Set(
    steps.flatMap(({ event }) => event.metadata.causationId ?? []).filter((id) => !byId.has(id)),
  );
  if (wanted.size > 0)
    for await (const event of eventStore.history<'session'>(session, { types: causing })) {
      if (!wanted.delete(event.id)) continue;
      byId.set(event.id, event);
      if (wanted.size === 0) break;
    }
  for (const step of steps) {
    const cause = byId.get(step.event.metadata.causationId ?? '');
    step.cause = cause === undefined ? null : { sequence: cause.sequence, type: cause.type };
  }
}
