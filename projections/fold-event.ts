import { STATE_UNKNOWN } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import type { Projection } from './projection.ts';
import type { ViewWrite } from './store/views.ts';

/** A view after an event, and where it stands. */
export type FoldedView<View> = {
  view: View | null;
  sequence: number;
  names: readonly string[];
  order: number;
};

/** The definition of every view. @throws what makes the event one to be passed over */
export function foldEvent<View>(
  projection: Projection<View>,
  before: View | null,
  event: RecordedEvent,
): FoldedView<View> {
  if (!projection.readsView && (event.state as unknown) === STATE_UNKNOWN)
    throw new Error('its state is of another version than this service folds');
  const view = projection.evolve(projection.readsView ? before : null, event);
  const place = view === null ? undefined : projection.lists?.(view, event);
  const { names, order } = place ?? { names: [], order: 0 };
  if (!Number.isFinite(order)) throw new RangeError(`no place in a list: ${order}`);
  return { view, sequence: event.sequence, names, order };
}

/** As it is handed to the store, but for its key. */
export function asWritten<View>(folded: FoldedView<View>): Omit<ViewWrite, 'key'> {
  const { view, sequence, names, order } = folded;
  return { sequence, view: view === null ? null : JSON.stringify(view), lists: names, order };
}
