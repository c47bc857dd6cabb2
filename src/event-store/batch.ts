import { encode, type Message } from '#events/codec.ts';
import { filterOf } from '#events/subjects.ts';
import type { Change } from './event-store.ts';

/** One message of an append. */
export type Member = {
  message: Message;
  /** The event's id; the log keeps each id once. */
  id: string;
  /**
   * What the log has to hold for the append to go through; null where an earlier member of the same
   * aggregate carries it: the log checks all members against what stood there before the first.
   */
  expected: { filter: string; sequence: number } | null;
};

/** nats-server takes no larger atomic batch (its error 10199). */
export const EVENTS_MAX = 1_000;

/**
 * The messages of an append in their order, each checked against its schema.
 * @throws MalformedEvent where data or state does not fit its schema
 * @throws RangeError where the changes break the port's contract: bugs of the caller
 */
export function membersOf(changes: readonly Change[]): Member[] {
  const members: Member[] = [];
  const seen = new Set<string>();
  for (const { aggregate, expectedSequence, events } of changes) {
    const filter = filterOf(aggregate);
    if (events.length === 0) throw new RangeError(`a change of ${filter} without events`);
    if (seen.has(filter)) throw new RangeError(`two changes of ${filter} in one append`);
    seen.add(filter);
    for (const [index, event] of events.entries()) {
      if (filterOf(event.aggregate) !== filter)
        throw new RangeError(`${event.type} in a change of ${filter}`);
      const expected = index === 0 ? { filter, sequence: expectedSequence } : null;
      members.push({ message: encode(event), id: event.id, expected });
    }
  }
  if (members.length === 0 || members.length > EVENTS_MAX)
    throw new RangeError(`an append of ${members.length} events`);
  return members;
}

/**
 * The first change, by whose command the whole append is found again: it is there whole or not at
 * all. And all the commands whose events are in it.
 */
export function commandsOf(changes: readonly Change[]): {
  first: Change;
  commandId: string;
  commandIds: ReadonlySet<string>;
} {
  const first = changes[0];
  const commandId = first?.events[0]?.cause.commandId;
  if (first === undefined || commandId === undefined) throw new RangeError('an append of nothing');
  const commandIds = new Set(
    changes.flatMap(({ events }) => events.map(({ cause }) => cause.commandId)),
  );
  return { first, commandId, commandIds };
}
