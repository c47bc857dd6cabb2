import type { Unsequenced } from '#events/codec.ts';
import type { Aggregates, RecordedEvent, RecordedOf, RefOf } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import type { Projection } from '#projections/projection.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import { evolve, load } from '#src/event-store/load-state.ts';
import { aCause, freshId } from './events.fixture.ts';
import { iso, T0 } from './examples.ts';

/** The session of the specifications, and others of its organization. */
export function sessionRef(id = 'ses_1', organizationId = 'org_acme'): RefOf<'session'> {
  return { kind: 'session', organizationId, id };
}

/**
 * Appends what happened to an aggregate, folded on the way; gives the events as they stand in the
 * log.
 */
export async function record<Kind extends AggregateKind>(
  log: EventLog,
  aggregate: RefOf<Kind>,
  ...happened: Aggregates[Kind]['event'][]
): Promise<RecordedOf<Kind>[]> {
  const before = await load<Kind>(log, aggregate);
  let { state } = before;
  const cause = aCause();
  const events = happened.map((event): Unsequenced => {
    state = evolve<Kind>(aggregate, state, event);
    return { aggregate, ...event, id: freshId('event'), time: iso(T0), state, cause };
  });
  await log.append([{ aggregate, expectedSequence: before.sequence, events }]);
  const history: RecordedOf<Kind>[] = [];
  for await (const event of log.history<Kind>(aggregate)) history.push(event);
  return history.slice(-happened.length);
}

/** given: events of one aggregate. Then: its view and where that stands, by the projection. */
export async function viewAfter<View, Kind extends AggregateKind>(
  projection: Projection<View>,
  aggregate: RefOf<Kind>,
  ...happened: Aggregates[Kind]['event'][]
): Promise<{ key: string | null; view: View | null; lists: string[]; order: number | null }> {
  const history = await record<Kind>(createMemoryEventLog(), aggregate, ...happened);
  const events = history as unknown as RecordedEvent[];
  let view: View | null = null;
  for (const event of events) view = projection.evolve(projection.readsView ? view : null, event);
  const last = events.at(-1);
  if (last === undefined) throw new RangeError('nothing happened');
  const place = view === null ? undefined : projection.lists?.(view, last);
  const lists = [...(place?.names ?? [])].toSorted();
  return { key: projection.key(last), view, lists, order: place?.order ?? null };
}
