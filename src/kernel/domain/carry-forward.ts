import type { Aggregates } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import { isFinal } from './session/session.ts';

type Finished = { [Kind in AggregateKind]: (state: Aggregates[Kind]['state']) => boolean };

const finished: Finished = {
  session: ({ status }) => isFinal(status),
  ledger: () => false,
  organization: () => false,
  profile: ({ removedAt }) => removedAt !== null,
  server: ({ status }) => status === 'left' || status === 'lost',
  workload: ({ status }) => status === 'terminated',
  archive: () => false,
};

/** Whether no decision needs the aggregate's state any more: it may be in the archive alone. */
export function isFinished<Kind extends AggregateKind>(
  kind: Kind,
  state: Aggregates[Kind]['state'],
): boolean {
  return finished[kind](state);
}

/**
 * The event that carries an aggregate's state beyond the archived part of the log; none if its last
 * event is beyond already, if it is finished, or if it does not exist.
 * @param sequence of the aggregate's last event
 * @param foldedUpTo events up to here carry no usable state: the history has to be folded for it
 */
export function decideCarryForward(
  kind: AggregateKind,
  { state, sequence }: { state: Aggregates[AggregateKind]['state'] | null; sequence: number },
  archivedUpTo: number,
  foldedUpTo = 0,
): Aggregates[AggregateKind]['event'][] {
  if (state === null || isFinished(kind, state)) return [];
  if (sequence > Math.max(archivedUpTo, foldedUpTo)) return [];
  return [{ type: `${kind}.carried-forward`, data: { archivedUpTo } }];
}
