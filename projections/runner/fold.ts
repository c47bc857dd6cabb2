import { MalformedEvent } from '#events/codec.ts';
import { hasState, type RecordedEvent } from '#events/events.ts';
import type { StateReader } from '#src/kernel/event-store/load-state.ts';
import type { Projection } from '../projection.ts';
import type { ViewWrite } from '../store/views.ts';

/** A view after an event, with its lists (`names`) and its order in them. */
export type FoldedView<View> = {
  view: View | null;
  sequence: number;
  names: readonly string[];
  order: number;
};

/**
 * The view after one event. All folds use it: the projector, rebuild, verify and retry.
 * @throws Error if the event cannot be folded: it becomes a dead letter.
 */
export function foldEvent<View>(
  projection: Projection<View>,
  event: RecordedEvent,
): FoldedView<View> {
  if (!hasState(event))
    throw new Error('the state in the event has another version, and its history is malformed');
  const view = projection.view(event);
  const place = view === null ? undefined : projection.lists?.(view, event);
  const { names, order } = place ?? { names: [], order: 0 };
  if (!Number.isFinite(order)) throw new RangeError(`no place in a list: ${order}`);
  return { view, sequence: event.sequence, names, order };
}

/**
 * The event with the state that its fold needs.
 * @throws WrittenByNewer if its history cannot be read here yet
 */
export async function completed(states: StateReader, event: RecordedEvent): Promise<RecordedEvent> {
  try {
    return await states.complete(event);
  } catch (error) {
    // A malformed history: the fold fails, and the event becomes a dead letter.
    if (error instanceof MalformedEvent) return event;
    throw error;
  }
}

/** The write to the store, without its key. */
export function toWrite<View>(folded: FoldedView<View>): Omit<ViewWrite, 'key'> {
  const { view, sequence, names, order } = folded;
  return { sequence, view: view === null ? null : JSON.stringify(view), lists: names, order };
}

/** One write for each view that the events change. */
export function foldBatch<View>(
  projection: Projection<View>,
  events: readonly RecordedEvent[],
  onFoldFailure: (event: RecordedEvent, reason: string) => void,
): ViewWrite[] {
  const folded = new Map<string, FoldedView<View>>();
  for (const event of events) {
    try {
      const key = projection.key(event);
      if (key !== null) folded.set(key, foldEvent(projection, event));
    } catch (error) {
      onFoldFailure(event, error instanceof Error ? error.message : String(error));
    }
  }
  return [...folded].map(([key, view]) => ({ key, ...toWrite(view) }));
}

/** null: the event changes no view, or its key cannot be computed, which its fold will report. */
export function keyOf<View>(projection: Projection<View>, event: RecordedEvent): string | null {
  try {
    return projection.key(event);
  } catch {
    return null;
  }
}
