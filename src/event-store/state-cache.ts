import { STATE_UNKNOWN } from '#events/codec.ts';
import type { RecordedEvent, RefOf } from '#events/events.ts';
import { filterOf, type AggregateKind, type AggregateRef } from '#events/subjects.ts';
import type { Loaded } from './load-state.ts';

/**
 * Aggregates as this process saw them last: what it appended itself, and what came to it. A command
 * decides on it without asking the log first; where that was out of date the append's guard says
 * so, and the leader is read. So it spares a round trip and proves nothing.
 */
export type Recent = {
  of<Kind extends AggregateKind>(aggregate: RefOf<Kind>): Loaded<Kind> | undefined;
  /** Keeps what is newer than what is known. */
  remember(aggregate: AggregateRef, loaded: Loaded<AggregateKind>): void;
  /** Keeps the state that an event carries. */
  saw(event: RecordedEvent): void;
  /** It was out of date. */
  forget(aggregate: AggregateRef): void;
};

/** A few KB each; beyond it the one that was longest unchanged is forgotten. */
const AGGREGATES_MAX = 2_000;

export function createRecent(): Recent {
  const known = new Map<string, Loaded<AggregateKind>>();

  function remember(aggregate: AggregateRef, loaded: Loaded<AggregateKind>): void {
    const key = filterOf(aggregate);
    const before = known.get(key);
    if (before !== undefined && before.sequence > loaded.sequence) return;
    known.delete(key);
    known.set(key, loaded);
    const [oldest] = known.keys();
    if (known.size > AGGREGATES_MAX && oldest !== undefined) known.delete(oldest);
  }
  return {
    of: <Kind extends AggregateKind>(aggregate: RefOf<Kind>) =>
      known.get(filterOf(aggregate)) as Loaded<Kind> | undefined,
    remember,
    saw({ aggregate, state, sequence }) {
      if ((state as unknown) !== STATE_UNKNOWN) remember(aggregate, { state, sequence });
    },
    forget: (aggregate) => known.delete(filterOf(aggregate)),
  };
}
