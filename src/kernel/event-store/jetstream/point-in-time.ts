import type { StoredMsg } from '@nats-io/jetstream';
import { decode } from '#events/codec.ts';
import type { RecordedOf, RefOf } from '#events/events.ts';
import { EVENTS_STREAM, streamFilter, type AggregateKind } from '#events/subjects.ts';
import type { JetStreamConnection } from './connection.ts';
import { readable } from '../unreadable.ts';
import { requestWithRetry } from './request.ts';
import { getMany } from './direct-get.ts';

const READ_MS = 2_000;

/**
 * The aggregate's last event at or before the sequence. In most cases that is the leader's newest
 * one. Otherwise the server returns the last event of each type up to there, a dozen at most, in
 * one answer. A lagging replica may give that answer, so the leader is asked whether one more event
 * follows.
 */
export async function lastUpTo<Kind extends AggregateKind>(
  connection: JetStreamConnection,
  aggregate: RefOf<Kind>,
  sequence: number,
): Promise<RecordedOf<Kind> | null> {
  const filter = streamFilter(aggregate);
  const newest = await fromLeader(connection, { last_by_subj: filter });
  if (newest === null || sequence < 1) return null;
  if (newest.seq <= sequence) return eventIn<Kind>(newest);
  const query = { multi_last: [filter], up_to_seq: sequence };
  const last = (await getMany(connection, EVENTS_STREAM, query, READ_MS)).at(-1);
  let later: StoredMsg | null = null;
  for (let seq = (last?.sequence ?? 0) + 1; seq <= sequence; seq = later.seq + 1) {
    const next = await fromLeader(connection, { seq, next_by_subj: filter });
    if (next === null || next.seq > sequence) break;
    later = next;
  }
  if (later !== null) return eventIn<Kind>(later);
  if (last === undefined) return null;
  const headers = new Map(last.headers);
  const header = (name: string) => headers.get(name) ?? '';
  const event = readable(() => decode(last.subject, header, last.body, last.sequence));
  return event as RecordedOf<Kind>;
}

function fromLeader(
  connection: JetStreamConnection,
  query: { last_by_subj: string } | { seq: number; next_by_subj: string },
): Promise<StoredMsg | null> {
  return requestWithRetry(connection, READ_MS, () =>
    connection.jsm.streams.getMessage(EVENTS_STREAM, query as { last_by_subj: string }),
  );
}

function eventIn<Kind extends AggregateKind>(stored: StoredMsg): RecordedOf<Kind> {
  const { subject, header, seq } = stored;
  const event = readable(() => decode(subject, (name) => header.get(name), stored.string(), seq));
  return event as RecordedOf<Kind>;
}
