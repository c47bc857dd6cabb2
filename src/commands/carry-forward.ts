import type { EventMetadata } from '#events/envelope.ts';
import type { AggregateKind, AggregateRef } from '#events/subjects.ts';
import { isRejection } from '#src/errors.ts';
import { decideCarryForward } from '#src/domain/carry-forward.ts';
import { loadState } from '#src/event-store/load-state.ts';
import { handleCommand, type CommandContext } from './handle-command.ts';

export { isFinished } from '#src/domain/carry-forward.ts';

/**
 * Records the aggregate's state again if its last event is in the archived part of the log, so that
 * this part can be purged. It decides on the leader's state, again after each conflict. Afterwards
 * the aggregate is finished, or its last event is beyond `archivedUpTo`.
 * @param archivedUpTo the last sequence that is archived
 * @returns whether this call is known to have recorded it; 'not-needed' also after a lost answer
 * @throws Unavailable if the event store does not answer, or the aggregate is too contended
 */
export async function carryForward(
  context: CommandContext,
  aggregate: AggregateRef,
  archivedUpTo: number,
  metadata: EventMetadata,
): Promise<'carried' | 'not-needed'> {
  const { kind } = aggregate;
  const loaded = await loadState(context.eventStore, aggregate, { fromLeader: true });
  if (decideCarryForward(kind, loaded, archivedUpTo).length === 0) return 'not-needed';
  const handled = await handleCommand<AggregateKind>(
    context,
    aggregate,
    (state, sequence) => decideCarryForward(kind, { state, sequence }, archivedUpTo),
    metadata,
  );
  return !isRejection(handled) && handled.isChanged ? 'carried' : 'not-needed';
}
