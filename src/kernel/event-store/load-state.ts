import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
import {
  hasState,
  type Aggregates,
  type EventWithState,
  type RecordedEvent,
  type RecordedOf,
  type RefOf,
} from '#events/events.ts';
import { streamFilter, type AggregateKind } from '#events/subjects.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { evolveArchive } from '#src/kernel/domain/archive/archive.ts';
import { evolveServer } from '#src/kernel/domain/fleet/server.ts';
import { evolveWorkload } from '#src/kernel/domain/fleet/workload.ts';
import { evolveLedger } from '#src/kernel/domain/organization/ledger.ts';
import { evolveOrganization } from '#src/kernel/domain/organization/organization.ts';
import { evolveProfile } from '#src/kernel/domain/profile/profile.ts';
import { evolve as evolveSession } from '#src/kernel/domain/session/session.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { EventStore, ReadLastOptions } from './event-store.ts';

type Evolve<Kind extends AggregateKind> = (
  state: Aggregates[Kind]['state'] | null,
  event: Aggregates[Kind]['event'],
  aggregate: RefOf<Kind>,
) => Aggregates[Kind]['state'];

/** The fold of each kind of aggregate. */
const evolves: { [Kind in AggregateKind]: Evolve<Kind> } = {
  session: evolveSession,
  ledger: evolveLedger,
  organization: (state, event, { organizationId }) =>
    evolveOrganization(state, event, organizationId),
  profile: evolveProfile,
  server: (state, event, { id }) => evolveServer(state, event, id),
  workload: (state, event, { id }) => evolveWorkload(state, event, id),
  archive: evolveArchive,
};

/** The aggregate's state after the event. */
export function evolve<Kind extends AggregateKind>(
  aggregate: RefOf<Kind>,
  state: Aggregates[Kind]['state'] | null,
  event: Aggregates[Kind]['event'],
): Aggregates[Kind]['state'] {
  const fold = evolves[aggregate.kind] as Evolve<Kind>;
  return fold(state, event, aggregate);
}

/** An aggregate's state (null: it does not exist) and the sequence of its last event. */
export type Loaded<Kind extends AggregateKind> = {
  state: Aggregates[Kind]['state'] | null;
  sequence: number;
};

/** Which state to load: the newest one (default), or with `upTo` the state at that sequence. */
export type LoadOptions = ReadLastOptions | { upTo: number };

/**
 * The aggregate's state: the one that its last event carries, at most two reads however long its
 * history. If that event was written with another state version, the history is folded.
 */
export async function loadState<Kind extends AggregateKind>(
  eventStore: EventStore,
  aggregate: RefOf<Kind>,
  options: LoadOptions = {},
): Promise<Loaded<Kind>> {
  const last =
    'upTo' in options
      ? await eventStore.readLastUpTo<Kind>(aggregate, options.upTo)
      : await eventStore.readLast<Kind>(aggregate, options);
  if (last === null) return { state: null, sequence: 0 };
  const { state, sequence } = await withState<Kind>(eventStore, last);
  return { state, sequence };
}

/**
 * The event with its aggregate's state: the one it carries, or the fold of the history up to the
 * event if it was written with another state version.
 * @throws Unavailable if the history cannot be read
 */
export async function withState<Kind extends AggregateKind>(
  eventStore: Pick<EventStore, 'history'>,
  event: RecordedOf<Kind>,
): Promise<EventWithState<Kind>> {
  if (event.state !== null) return event as EventWithState<Kind>;
  const aggregate = event.aggregate;
  let state: Aggregates[Kind]['state'] | null = null;
  for await (const earlier of eventStore.history<Kind>(aggregate)) {
    if (earlier.sequence > event.sequence) break;
    state = evolve(aggregate, state, earlier);
  }
  if (state === null) throw new Unavailable('event-log', new Error('the history is incomplete'));
  return { ...event, state };
}

/** Completes events that a reader gets in the order of the event store. */
export type StateReader = {
  /** @throws WrittenByNewer if the event's history cannot be read here yet */
  complete<Event extends RecordedEvent>(event: Event): Promise<Event & EventWithState>;
  /** Must be called before the reader gets events again, or has left some out. */
  clear(): void;
};

/** States of aggregates with events of another state version; some kilobytes each. */
const STATES_MAX = 10_000;

/**
 * `withState` for a reader of all events of an aggregate: its history is read once, at its first
 * event with a foreign state, and not at each of them.
 */
export function createStateReader(eventStore: Pick<EventStore, 'history'>): StateReader {
  const states = new BoundedMap<string, EventWithState['state']>(STATES_MAX);

  async function fold(event: RecordedEvent, key: string): Promise<EventWithState> {
    const known = states.get(key);
    if (known === undefined) return withState<AggregateKind>(eventStore, event);
    return { ...event, state: evolve(event.aggregate, known, event) } as EventWithState;
  }
  return {
    async complete(event: RecordedEvent) {
      const isKnown = hasState(event);
      if (isKnown && states.size === 0) return event;
      const key = streamFilter(event.aggregate);
      const complete = isKnown ? event : await fold(event, key);
      const isKept = states.delete(key) || !isKnown;
      if (isKept) states.set(key, complete.state);
      return complete;
    },
    clear: () => states.clear(),
  };
}

/**
 * The last sequence of a moment (ms since the epoch, that millisecond included), by the store's own
 * clock: a reader at that moment could have seen events up to there.
 */
export async function sequenceAt(
  { eventStore, now }: { eventStore: EventStore; now: () => number },
  at: number,
): Promise<number> {
  // More events may be stored in the current millisecond; the same query must return the same
  // answer.
  if (at >= now()) await sleep(2);
  return eventStore.sequenceBefore(new Date(at + 1).toISOString());
}

/**
 * Loads a session as a caller may know it already. A replica may lag behind what this process has
 * received, and behind what a command has just answered, so the leader is asked. Reads that may be
 * older take `loadState`.
 */
export async function loadCurrent(
  eventStore: EventStore,
  aggregate: RefOf<'session'>,
): Promise<Loaded<'session'>> {
  return loadState<'session'>(eventStore, aggregate, { fromLeader: true });
}
