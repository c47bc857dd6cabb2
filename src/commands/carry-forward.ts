import type { EventMetadata } from '#events/envelope.ts';
import type { AggregateKind, AggregateRef } from '#events/subjects.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { decideCarryForward } from '#src/kernel/domain/carry-forward.ts';
import { withState } from '#src/kernel/event-store/load-state.ts';
import { handleCommand, type CommandContext } from './handle-command.ts';

export { isFinished } from '#src/kernel/domain/carry-forward.ts';

/**
 * Records the aggregate's state again if its last event is in the archived part of the log, so that
 * this part can be purged. It decides on the leader's state, again after each conflict. Afterwards
 * the aggregate is finished, or its last event is beyond `archivedUpTo`. An event whose state is of
 * another version counts as archived: the fold of its history would need the purged events.
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
  const last = await context.eventStore.readLast(aggregate, { fromLeader: true });
  if (last === null) return 'not-needed';
  const foldedUpTo = last.state === null ? last.sequence : 0;
  const loaded = await withState(context.eventStore, last);
  if (decideCarryForward(kind, loaded, archivedUpTo, foldedUpTo).length === 0) return 'not-needed';
  const handled = await handleCommand<AggregateKind>(
    context,
    aggregate,
    (state, sequence) => decideCarryForward(kind, { state, sequence }, archivedUpTo, foldedUpTo),
    metadata,
  );
  return !isRejection(handled) && handled.isChanged ? 'carried' : 'not-needed';
}
