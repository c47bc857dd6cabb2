import type { PendingEvent } from '#events/codec.ts';
import type { Aggregates, EventWithState, RecordedOf, RefOf } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import type { Projection } from '#projections/projection.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { evolve, loadState } from '#src/kernel/event-store/load-state.ts';
import { aCause, freshId } from './events.fixture.ts';
import { iso, T0 } from './examples.ts';

/** The session that tests use by default, and others of its organization. */
export function sessionRef(id = 'ses_1', organizationId = 'org_acme'): RefOf<'session'> {
  return { kind: 'session', organizationId, id };
}

/**
 * Appends events to an aggregate with their folded states; returns them as they were stored.
 */
export async function record<Kind extends AggregateKind>(
  eventStore: EventStore,
  aggregate: RefOf<Kind>,
  ...happened: Aggregates[Kind]['event'][]
): Promise<RecordedOf<Kind>[]> {
  const before = await loadState<Kind>(eventStore, aggregate);
  let { state } = before;
  const metadata = aCause();
  const events = happened.map((event): PendingEvent => {
    state = evolve<Kind>(aggregate, state, event);
    return { aggregate, ...event, id: freshId('event'), time: iso(T0), state, metadata };
  });
  await eventStore.append([{ aggregate, expectedSequence: before.sequence, events }]);
  const history: RecordedOf<Kind>[] = [];
  for await (const event of eventStore.history<Kind>(aggregate)) history.push(event);
  return history.slice(-happened.length);
}

/** The view of one aggregate after these events, and its place in the projection's lists. */
export async function viewAfter<View, Kind extends AggregateKind>(
  projection: Projection<View>,
  aggregate: RefOf<Kind>,
  ...happened: Aggregates[Kind]['event'][]
): Promise<{ key: string | null; view: View | null; lists: string[]; order: number | null }> {
  const history = await record<Kind>(createMemoryEventStore(), aggregate, ...happened);
  const events = history as unknown as EventWithState[];
  let view: View | null = null;
  for (const event of events) view = projection.view(event);
  const last = events.at(-1);
  if (last === undefined) throw new RangeError('no events were given');
  const place = view === null ? undefined : projection.lists?.(view, last);
  const lists = [...(place?.names ?? [])].toSorted();
  return { key: projection.key(last), view, lists, order: place?.order ?? null };
}
