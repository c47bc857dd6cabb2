import { STATE_UNKNOWN } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import type { Projection } from '#projections/projection.ts';
import { Unavailable } from '#src/errors.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { evolve } from '#src/event-store/load-state.ts';
import { loadAt } from '../../log/past.ts';
import { readRange } from '#src/event-store/read-range.ts';

/** The views of a projection as of a sequence, by their keys. Not changed once it is handed out. */
export type Fold = { upTo: number; isWhole: boolean; views: ReadonlyMap<string, FoldedView> };

/** A view as JSON text, and its places: what the read model holds of it. */
export type FoldedView = { text: string; names: ReadonlySet<string>; order: number };

/** A request is answered within this, or told to come back: what is folded by then is kept. */
const FOLD_MS = 8_000;
/** Some milliseconds of work, each; others' requests have their turn in between. */
const READ_AT_ONCE = 1_000;
const FOLDED_AT_ONCE = 100;
/** A view takes about half a kilobyte. */
const VIEWS_MAX = 250_000;

/**
 * Folds a projection over these subjects up to the sequence, as the projector would, going on from
 * an earlier fold of the same. After 8 s it is what it is: not whole, and true of an earlier
 * sequence. @throws Unavailable where the log does not answer, or there are too many views
 */
export async function foldUpTo<View>(
  log: EventLog,
  projection: Projection<View>,
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
    batchMax: READ_AT_ONCE,
    mayLeaveOut: (_: number, by: number) => by <= upTo,
    // Parked by the projector too, which tells of it: its view stays as it was.
    onMalformed: () => undefined,
  };
  for await (const batch of readRange(log, range)) {
    for (const [at, event] of batch.entries()) {
      if (at % FOLDED_AT_ONCE === FOLDED_AT_ONCE - 1) await new Promise(setImmediate);
      const key = projection.key(event);
      if (key === null) continue;
      const known = await withState(log, event, { states, isNew: !views.has(key), key });
      place(views, projection, key, known);
    }
    if (views.size > VIEWS_MAX)
      throw new Unavailable('event-log', new Error(`more than ${VIEWS_MAX} views to fold`));
    if (performance.now() > deadline)
      return { upTo: batch.at(-1)?.sequence ?? from.upTo, isWhole: false, views };
    await new Promise(setImmediate);
  }
  return { upTo, isWhole: true, views };
}

/** States of aggregates whose events carry one of another version of the fold, as folded here. */
type States = Map<string, RecordedEvent['state'] | null>;

/** The event with a state that can be trusted: its own, else what this fold makes of it. */
async function withState(
  log: EventLog,
  event: RecordedEvent,
  { states, isNew, key }: { states: States; isNew: boolean; key: string },
): Promise<RecordedEvent> {
  if ((event.state as unknown) !== STATE_UNKNOWN) {
    states.delete(key);
    return event;
  }
  const { aggregate } = event;
  const isFolding = states.has(key) || isNew;
  const { state } = isFolding
    ? { state: evolve(aggregate, states.get(key) ?? null, event) }
    : await loadAt(log, aggregate, event.sequence);
  states.set(key, state);
  return { ...event, state } as RecordedEvent;
}

/** What nothing has been folded into yet. */
export const nothing: Fold = { upTo: 0, isWhole: true, views: new Map() };

function place<View>(
  views: Map<string, FoldedView>,
  projection: Projection<View>,
  key: string,
  event: RecordedEvent,
): void {
  // None of ours that is asked of the past reads its view: each event's state says everything.
  const view = projection.evolve(null, event);
  if (view === null) {
    views.delete(key);
    return;
  }
  const { names, order } = projection.lists?.(view, event) ?? { names: [], order: 0 };
  views.set(key, { text: JSON.stringify(view), names: new Set(names), order });
}
