import { setTimeout as pause } from 'node:timers/promises';
import { STATE_UNKNOWN } from '#events/codec.ts';
import type { Aggregates, RefOf } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import type { EventLog } from '../event-store/event-store.ts';
import { evolve, type Loaded } from '../event-store/load-state.ts';
import type { Desk } from '../commands/handle-command.ts';

/**
 * The last sequence of the moment (ms since the epoch), its millisecond included: what was stored
 * by then, by the log's own clock, is what a reader could have been told then.
 */
export async function sequenceAt({ log, now }: Desk, at: number): Promise<number> {
  // A millisecond that is not over may bring more; asked again, the answer is to be the same.
  if (at >= now()) await pause(2);
  return log.sequenceBefore(new Date(at + 1).toISOString());
}

/**
 * The aggregate as of a sequence: two reads however long its history. A state of another version of
 * the fold is not trusted: then the history up to there is folded.
 */
export async function loadAt<Kind extends AggregateKind>(
  log: EventLog,
  aggregate: RefOf<Kind>,
  sequence: number,
): Promise<Loaded<Kind>> {
  const last = await log.lastUpTo<Kind>(aggregate, sequence);
  if (last === null) return { state: null, sequence: 0 };
  if ((last.state as unknown) !== STATE_UNKNOWN)
    return { state: last.state, sequence: last.sequence };
  let state: Aggregates[Kind]['state'] | null = null;
  for await (const event of log.history<Kind>(aggregate)) {
    if (event.sequence > last.sequence) break;
    state = evolve(aggregate, state, event);
  }
  return { state, sequence: last.sequence };
}
