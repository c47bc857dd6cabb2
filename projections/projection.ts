import type { EventWithState, RecordedEvent } from '#events/events.ts';
import type { AggregateRef } from '#events/subjects.ts';

/**
 * A read model: each event of an aggregate makes one view anew, from the state that the event
 * carries, so that a rebuild reads no views. A new `version` is built beside the old one until it
 * has caught up. Any change of `key`, `view` or `lists` needs a new version.
 */
export type Projection<View> = {
  readonly name: string;
  readonly version: number;
  /** Subject filters of the events that it folds. */
  readonly subjects: readonly string[];
  /** Key of the view that an event changes; null: none. */
  key(event: RecordedEvent): string | null;
  /** The aggregate whose events make the view: maintenance folds one view from them. */
  aggregateOf(key: string): AggregateRef;
  /** The view after an event that has a key; null removes it. */
  view(event: EventWithState): View | null;
  /**
   * Names of the ordered lists that contain the view after the event, and its place in them. The
   * event is passed because the view may lack the fields that decide this.
   */
  lists?(view: View, event: EventWithState): { names: readonly string[]; order: number };
};

/** `session-view:v1`: the name of a projection version's store. */
export function projectionId(projection: { name: string; version: number }): string {
  return `${projection.name}:v${projection.version}`;
}
