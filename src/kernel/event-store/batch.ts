import { encode, type Message } from '#events/codec.ts';
import { streamFilter } from '#events/subjects.ts';
import type { StreamAppend } from './event-store.ts';

/** One message of an append. */
export type BatchMessage = {
  message: Message;
  /** The event's id; the event store keeps each id once. */
  id: string;
  /**
   * The check that this message carries: the last sequence of its aggregate. Null if an earlier
   * message of the same aggregate carries it: the event store checks all messages against the state
   * before the first one.
   */
  expected: { filter: string; sequence: number } | null;
};

/** nats-server accepts no larger atomic batch (its error 10199). */
export const EVENTS_MAX = 1_000;

/**
 * The messages of an append in their order, each validated against its schema.
 * @throws MalformedEvent if data or state does not fit its schema
 * @throws RangeError if the changes break the port's contract, a bug of the caller
 */
export function batchMessages(changes: readonly StreamAppend[]): BatchMessage[] {
  const members: BatchMessage[] = [];
  const seen = new Set<string>();
  for (const { aggregate, expectedSequence, events } of changes) {
    const filter = streamFilter(aggregate);
    if (events.length === 0) throw new RangeError(`a change of ${filter} without events`);
    if (seen.has(filter)) throw new RangeError(`two changes of ${filter} in one append`);
    seen.add(filter);
    for (const [index, event] of events.entries()) {
      if (streamFilter(event.aggregate) !== filter)
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
 * The first change, its command id, and the ids of all commands with events in the append. The
 * first command's id suffices to recognize a stored append, since an append is stored as a whole or
 * not at all.
 */
export function commandsOf(changes: readonly StreamAppend[]): {
  first: StreamAppend;
  commandId: string;
  commandIds: ReadonlySet<string>;
} {
  const first = changes[0];
  const commandId = first?.events[0]?.metadata.commandId;
  if (first === undefined || commandId === undefined)
    throw new RangeError('an append without events');
  const commandIds = new Set(
    changes.flatMap(({ events }) => events.map(({ metadata }) => metadata.commandId)),
  );
  return { first, commandId, commandIds };
}
