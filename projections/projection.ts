import type { EventWithState, RecordedEvent } from '#events/events.ts';
import type { AggregateRef } from '#events/subjects.ts';

/**
 * A read model: a pure fold of events into views, one per key. A new `version` is built beside the
 * old one until it has caught up. Any change of `key`, `evolve` or `lists` needs a new version.
 */
export type Projection<View> = StateProjection<View> | FoldProjection<View>;

/** Makes each view from one event's state: a rebuild reads no views. */
export type StateProjection<View> = ProjectionOf<View, EventWithState> & {
  readonly readsView: false;
};

/** Makes each view from the previous view and the event, whose state may be unknown. */
export type FoldProjection<View> = ProjectionOf<View, RecordedEvent> & {
  readonly readsView: true;
};

type ProjectionOf<View, Event> = {
  readonly name: string;
  readonly version: number;
  /** Subject filters of the events that it folds. */
  readonly subjects: readonly string[];
  /** Key of the view that an event changes; null: none. */
  key(event: RecordedEvent): string | null;
  /** The aggregate whose events make the view: maintenance folds one view from them. */
  aggregateOf(key: string): AggregateRef;
  /** The view after the event; null removes it. Without `readsView` the view passed in is null. */
  evolve(view: View | null, event: Event): View | null;
  /**
   * Names of the ordered lists that contain the view after the event, and its place in them. The
   * event is passed because the view may lack the fields that decide this.
   */
  lists?(view: View, event: Event): { names: readonly string[]; order: number };
};

/** `session-view:v1`: the name of a projection version's store. */
export function projectionId(projection: { name: string; version: number }): string {
  return `${projection.name}:v${projection.version}`;
}
