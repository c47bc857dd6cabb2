import { hasState, type EventWithState, type RecordedEvent } from '#events/events.ts';
import type { Projection } from '#projections/projection.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { refuseUnknown } from '#src/kernel/event-store/unreadable.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';

/** The views of a projection as of a sequence, by their keys. Immutable once it is whole. */
export type Fold = { upTo: number; isWhole: boolean; views: ReadonlyMap<string, FoldedView> };

/** A view as JSON text, the names of its lists and its order: the read model stores the same. */
export type FoldedView = { text: string; names: ReadonlySet<string>; order: number };

/** Decoded and folded at once: some 5 ms of work; other requests run in between. */
const READ_AT_ONCE = 200;
/** A view takes about half a kilobyte. */
const VIEWS_MAX = 250_000;

/**
 * Folds a projection over these subjects up to the sequence, as the projector does, starting from
 * an earlier fold of the same. After `withinMs` it returns an incomplete fold (`isWhole` false),
 * which is correct as of an earlier sequence. An incomplete fold that it starts from is used up:
 * its views are changed. @throws Unavailable if the event store does not answer, or there are too
 * many views
 */
export async function foldUpTo<View>(
  eventStore: EventStore,
  projection: Projection<View>,
  subjects: readonly string[],
  { from, upTo, withinMs }: { from: Fold; upTo: number; withinMs: number },
): Promise<Fold> {
  if (from.upTo >= upTo) return { ...from, isWhole: true };
  // A copy of 250,000 views takes 20 ms: one for each request, not one for each of its turns.
  const views = from.isWhole ? new Map(from.views) : (from.views as Map<string, FoldedView>);
  const states: States = new Map();
  const deadline = performance.now() + withinMs;
  let foldedUpTo = from.upTo;
  const range = {
    subjects,
    after: from.upTo,
    upTo,
    includesArchive: true,
    batchMax: READ_AT_ONCE,
    canSkip: (_: number, by: number) => by <= upTo,
    // The projector dead-letters a malformed event, too, and reports it; the view does not change.
    onUnreadable: refuseUnknown,
  };
  for await (const batch of eventStore.read(range)) {
    for (const event of batch) {
      const key = projection.key(event);
      if (key === null) continue;
      const known = await withState(eventStore, event, { states, isNew: !views.has(key), key });
      if (known !== null) place(views, projection, key, known);
    }
    foldedUpTo = batch.at(-1)?.sequence ?? foldedUpTo;
    if (views.size > VIEWS_MAX)
      throw new Unavailable('event-log', new Error(`more than ${VIEWS_MAX} views to fold`));
    if (performance.now() > deadline) return { upTo: foldedUpTo, isWhole: false, views };
    await new Promise(setImmediate);
  }
  return { upTo, isWhole: true, views };
}

/** States folded here, of aggregates whose events carry a state of another version of the fold. */
type States = Map<string, RecordedEvent['state'] | null>;

/** The event with a usable state: its own, else the one that this fold computes. */
async function withState(
  eventStore: EventStore,
  event: RecordedEvent,
  { states, isNew, key }: { states: States; isNew: boolean; key: string },
): Promise<EventWithState | null> {
  if (hasState(event)) {
    states.delete(key);
    return event;
  }
  const { aggregate } = event;
  const isFolding = states.has(key) || isNew;
  const { state } = isFolding
    ? { state: evolve(aggregate, states.get(key) ?? null, event) }
    : await loadState(eventStore, aggregate, { upTo: event.sequence });
  states.set(key, state);
  return state === null ? null : ({ ...event, state } as EventWithState);
}

/** The empty fold. */
export const nothing: Fold = { upTo: 0, isWhole: true, views: new Map() };

function place<View>(
  views: Map<string, FoldedView>,
  projection: Projection<View>,
  key: string,
  event: EventWithState,
): void {
  const view = projection.view(event);
  if (view === null) {
    views.delete(key);
    return;
  }
  const { names, order } = projection.lists?.(view, event) ?? { names: [], order: 0 };
  views.set(key, { text: JSON.stringify(view), names: new Set(names), order });
}
