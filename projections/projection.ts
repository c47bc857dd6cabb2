import type { RecordedEvent } from '#events/events.ts';
import type { AggregateRef } from '#events/subjects.ts';

/**
 * A read model: a pure fold of the log into views, each under a key of its own.
 * A new `version` lives beside the old one until it has caught up; any change to what is folded,
 * keyed or listed needs one.
 */
export type Projection<View> = {
  readonly name: string;
  readonly version: number;
  /** Subject filters of the events it hears. */
  readonly subjects: readonly string[];
  /** The view an event concerns; null: none. */
  key(event: RecordedEvent): string | null;
  /** The aggregate that a view's events are of, so that one view can be folded by itself. */
  aggregateOf(key: string): AggregateRef;
  /**
   * The view after the event; null removes it. With `readsView: false` the view handed in is always
   * null: the event's own state says everything, and a rebuild need not read what it writes.
   */
  readonly readsView: boolean;
  evolve(view: View | null, event: RecordedEvent): View | null;
  /**
   * Names of the ordered lists that the view stands in after the event, and its place there. The
   * event is handed in because a view is kept as its readers want it, and may not say all of this.
   */
  lists?(view: View, event: RecordedEvent): { names: readonly string[]; order: number };
};

/** `session-view:v1`: the prefix of everything a projection's version owns. */
export function idOf(projection: { name: string; version: number }): string {
  return `${projection.name}:v${projection.version}`;
}
