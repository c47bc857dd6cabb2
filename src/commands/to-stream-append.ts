import type { PendingEvent } from '#events/codec.ts';
import type { EventMetadata } from '#events/envelope.ts';
import type { Aggregates } from '#events/events.ts';
import type { AggregateKind, AggregateRef } from '#events/subjects.ts';
import { newId } from '#src/kernel/ids.ts';
import type { StreamAppend } from '#src/kernel/event-store/event-store.ts';
import { evolve, type Loaded } from '#src/kernel/event-store/load-state.ts';

/** Events that were decided for an aggregate, to be appended; they are of its kind. */
export type Decision = {
  aggregate: AggregateRef;
  events: readonly { type: string; data: unknown }[];
};

/** The change to append for a decision: each event with the aggregate's state after it. */
export function toStreamAppend(
  { aggregate, events }: Decision,
  { state: before, sequence }: Loaded<AggregateKind>,
  now: number,
  metadata: EventMetadata,
): StreamAppend {
  let state = before;
  const time = new Date(now).toISOString();
  const unsequenced = events.map(({ type, data }): PendingEvent => {
    state = evolve(aggregate, state, { type, data } as Aggregates[AggregateKind]['event']);
    return { aggregate, id: newId('evt'), type, time, data, state, metadata };
  });
  return { aggregate, expectedSequence: sequence, events: unsequenced };
}
