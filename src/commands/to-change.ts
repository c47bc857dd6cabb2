import type { Unsequenced } from '#events/codec.ts';
import type { Cause } from '#events/envelope.ts';
import type { Aggregates } from '#events/events.ts';
import type { AggregateKind, AggregateRef } from '#events/subjects.ts';
import { newId } from '#src/ids.ts';
import type { Change } from '#src/event-store/event-store.ts';
import { evolve, type Loaded } from '#src/event-store/load-state.ts';

/** What was decided of an aggregate, to be recorded; events are of its kind. */
export type Intent = {
  aggregate: AggregateRef;
  events: readonly { type: string; data: unknown }[];
};

/** The change that records what was decided: each event with the state after it. */
export function toChange(
  { aggregate, events }: Intent,
  { state: before, sequence }: Loaded<AggregateKind>,
  now: number,
  cause: Cause,
): Change {
  let state = before;
  const time = new Date(now).toISOString();
  const unsequenced = events.map(({ type, data }): Unsequenced => {
    state = evolve(aggregate, state, { type, data } as Aggregates[AggregateKind]['event']);
    return { aggregate, id: newId('evt'), type, time, data, state, cause };
  });
  return { aggregate, expectedSequence: sequence, events: unsequenced };
}
