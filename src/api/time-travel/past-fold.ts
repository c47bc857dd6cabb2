import { hasState, type EventWithState, type RecordedEvent } from '#events/events.ts';
import type { StateProjection } from '#projections/projection.ts';
import { Unavailable } from '#src/errors.ts';
import type { EventStore } from '#src/event-store/event-store.ts';
import { refuseUnknown } from '#src/event-store/unreadable.ts';
import { evolve } from '#src/event-store/load-state.ts';
import { loadState } from '#src/event-store/load-state.ts';

/** The views of a projection as of a sequence, by their keys. Immutable once it is returned. */
export type Fold = { upTo: number; isWhole: boolean; views: ReadonlyMap<string, FoldedView> };

/** A view as JSON text, the names of its lists and its order: the read model stores the same. */
export type FoldedView = { text: string; names: ReadonlySet<string>; order: number };

/** Time limit of a request's fold. Beyond it the answer is 503, and the fold so far is kept. */
const FOLD_MS = 8_000;
/** Some milliseconds of work each; other requests run in between. */
const READ_AT_ONCE = 1_000;
const FOLDED_AT_ONCE = 100;
/** A view takes about half a kilobyte. */
const VIEWS_MAX = 250_000;

/**
 * Folds a projection over these subjects up to the sequence, as the projector does, starting from
 * an earlier fold of the same. After 8 s it returns an incomplete fold (`isWhole` false), which is
 * correct as of an earlier sequence. @throws Unavailable if the event store does not answer, or
 * there are too many views
 */
export async function foldUpTo<View>(
  eventStore: EventStore,
  projection: StateProjection<View>,
  subjects: readonly string[],
  { from, upTo }: { from: Fold; upTo: number },
): Promise<Fold> {
  if (from.upTo >= upTo) return from;
  const views = new Map(from.views);
  const states: States = new Map();
  const deadline = performance.now() + FOLD_MS;
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
    for (const [at, event] of batch.entries()) {
      if (at % FOLDED_AT_ONCE === FOLDED_AT_ONCE - 1) await new Promise(setImmediate);
      const key = projection.key(event);
      if (key === null) continue;
      const known = await withState(eventStore, event, { states, isNew: !views.has(key), key });
      if (known !== null) place(views, projection, key, known);
    }
    if (views.size > VIEWS_MAX)
      throw new Unavailable('event-log', new Error(`more than ${VIEWS_MAX} views to fold`));
    if (performance.now() > deadline)
      return { upTo: batch.at(-1)?.sequence ?? from.upTo, isWhole: false, views };
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
  projection: StateProjection<View>,
  key: string,
  event: EventWithState,
): void {
  const view = projection.evolve(null, event);
  if (view === null) {
    views.delete(key);
    return;
  }
  const { names, order } = projection.lists?.(view, event) ?? { names: [], order: 0 };
  views.set(key, { text: JSON.stringify(view), names: new Set(names), order });
}
