import { decode } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { EVENTS_STREAM, streamFilter, type AggregateRef } from '#events/subjects.ts';
import type { JetStreamConnection } from './connection.ts';
import { readable, refuseUnreadable } from '../unreadable.ts';
import { getMany } from './direct-get.ts';
import { readRange } from './read.ts';
import { requestWithRetry } from './request.ts';

const READ_MS = 2_000;

/**
 * An aggregate's events of these types (default: all), oldest first. The leader counts the events
 * of each type. Where none came twice, which is the usual life of a session, one direct get of the
 * last of each type returns them all. Otherwise, or where a lagging replica has not all of them,
 * they are read by a consumer. In a store of 200,000 events the first takes the server 0.2 ms, the
 * second 17 ms.
 */
export async function* readHistory(
  connection: JetStreamConnection,
  aggregate: AggregateRef,
  types: ReadonlySet<string> | null,
): AsyncGenerator<RecordedEvent[], void, void> {
  const filter = streamFilter(aggregate);
  const { counts, end } = await countEvents(connection, filter);
  const isWanted = (subject: string) => types === null || types.has(typeIn(aggregate, subject));
  const subjects = [...counts.keys()].filter(isWanted);
  if (subjects.length === 0) return;
  if (subjects.every((subject) => counts.get(subject) === 1)) {
    const query = { multi_last: subjects, up_to_seq: end };
    const stored = await getMany(connection, EVENTS_STREAM, query, READ_MS);
    if (stored.length === subjects.length)
      return yield stored.map(({ subject, headers, body, sequence }) => {
        const named = new Map(headers);
        return readable(() => decode(subject, (name) => named.get(name) ?? '', body, sequence));
      });
  }
  const range = { subjects: [filter], onUnreadable: refuseUnreadable };
  const newest = await requestWithRetry(connection, READ_MS, () =>
    connection.jsm.streams.getMessage(EVENTS_STREAM, { last_by_subj: filter }),
  );
  for await (const batch of readRange(connection, range, { sequence: 0 }, newest?.seq ?? 0))
    yield types === null ? batch : batch.filter(({ type }) => types.has(type));
}

/** The events of each subject of a filter, and the sequence up to which they are counted. */
async function countEvents(
  connection: JetStreamConnection,
  filter: string,
): Promise<{ counts: Map<string, number>; end: number }> {
  const { state } = await requestWithRetry(connection, READ_MS, () =>
    connection.jsm.streams.info(EVENTS_STREAM, { subjects_filter: filter }),
  );
  return { counts: new Map(Object.entries(state.subjects ?? {})), end: state.last_seq };
}

/** The event's type by its subject, which ends with the type's last word. */
function typeIn({ kind }: AggregateRef, subject: string): string {
  return `${kind}.${subject.slice(subject.lastIndexOf('.') + 1)}`;
}
