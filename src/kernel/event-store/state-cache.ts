import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
import type { RecordedEvent, RefOf } from '#events/events.ts';
import { streamFilter, type AggregateKind, type AggregateRef } from '#events/subjects.ts';
import type { Loaded } from './load-state.ts';

/**
 * The newest states of aggregates that this process has seen: what it appended, and what it
 * received. A command decides on the cached state without a read. If that is outdated, the append
 * fails its check, and the command reads the leader. The cache saves a round trip; it does not
 * guarantee that a state is current.
 */
export type StateCache = {
  get<Kind extends AggregateKind>(aggregate: RefOf<Kind>): Loaded<Kind> | undefined;
  /** Stores the state if it is newer than the cached one. */
  set(aggregate: AggregateRef, loaded: Loaded<AggregateKind>): void;
  /** Stores the state that an event carries, if any. */
  observe(event: RecordedEvent): void;
  /** Removes an outdated state. */
  delete(aggregate: AggregateRef): void;
};

/**
 * A few KB each. Beyond this number the aggregate that has not changed for the longest time is
 * dropped.
 */
const AGGREGATES_MAX = 2_000;

export function createStateCache(): StateCache {
  const known = new BoundedMap<string, Loaded<AggregateKind>>(AGGREGATES_MAX);

  function remember(aggregate: AggregateRef, loaded: Loaded<AggregateKind>): void {
    const key = streamFilter(aggregate);
    const before = known.get(key);
    if (before !== undefined && before.sequence > loaded.sequence) return;
    known.set(key, loaded);
  }
  return {
    get: <Kind extends AggregateKind>(aggregate: RefOf<Kind>) =>
      known.get(streamFilter(aggregate)) as Loaded<Kind> | undefined,
    set: remember,
    observe({ aggregate, state, sequence }) {
      if (state !== null) remember(aggregate, { state, sequence });
    },
    delete: (aggregate) => known.delete(streamFilter(aggregate)),
  };
}
