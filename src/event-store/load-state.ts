import { STATE_UNKNOWN } from '#events/codec.ts';
import type { Aggregates, RefOf } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import { evolveServer } from '#src/domain/fleet/server.ts';
import { evolveWorkload } from '#src/domain/fleet/workload.ts';
import { evolveLedger } from '#src/domain/organization/ledger.ts';
import { evolveOrganization } from '#src/domain/organization/organization.ts';
import { evolve as evolveSession } from '#src/domain/session/session.ts';
import type { EventLog } from './event-store.ts';

type Evolve<Kind extends AggregateKind> = (
  state: Aggregates[Kind]['state'] | null,
  event: Aggregates[Kind]['event'],
  aggregate: RefOf<Kind>,
) => Aggregates[Kind]['state'];

/** How each kind of aggregate folds. */
const evolves: { [Kind in AggregateKind]: Evolve<Kind> } = {
  session: evolveSession,
  ledger: evolveLedger,
  organization: (state, event, { organizationId }) =>
    evolveOrganization(state, event, organizationId),
  server: (state, event, { id }) => evolveServer(state, event, id),
  workload: (state, event, { id }) => evolveWorkload(state, event, id),
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

/**
 * What is known of an aggregate: its state (null: it does not exist) and its last event's sequence.
 */
export type Loaded<Kind extends AggregateKind> = {
  state: Aggregates[Kind]['state'] | null;
  sequence: number;
};

/**
 * The aggregate as of its last event, one read however long its history. A state that was written
 * by another version of the fold is not trusted: then the history is folded.
 */
export async function load<Kind extends AggregateKind>(
  log: EventLog,
  aggregate: RefOf<Kind>,
  options: { fromLeader?: boolean } = {},
): Promise<Loaded<Kind>> {
  const last = await log.last<Kind>(aggregate, options);
  if (last === null) return { state: null, sequence: 0 };
  if ((last.state as unknown) !== STATE_UNKNOWN)
    return { state: last.state, sequence: last.sequence };
  let state: Aggregates[Kind]['state'] | null = null;
  for await (const event of log.history<Kind>(aggregate)) state = evolve(aggregate, state, event);
  return { state, sequence: last.sequence };
}

/**
 * A session for who may have been told of it already: a copy of the log that lags would have none,
 * or one that is not active yet, so that it is the leader's word that counts then.
 */
export async function loadSettled(
  log: EventLog,
  aggregate: RefOf<'session'>,
): Promise<Loaded<'session'>> {
  const found = await load<'session'>(log, aggregate);
  const isBeginning = found.state === null || ['creating', 'queued'].includes(found.state.status);
  return isBeginning ? load<'session'>(log, aggregate, { fromLeader: true }) : found;
}
