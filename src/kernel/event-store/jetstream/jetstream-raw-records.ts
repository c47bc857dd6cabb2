import { Unavailable } from '#src/kernel/errors.ts';
import { EVENTS_STREAM, filters, filtersFor } from '#events/subjects.ts';
import type { JetStreamConnection } from './connection.ts';
import { requestWithRetry } from './request.ts';
import { getMany } from './direct-get.ts';
import { headerBytes } from './message.ts';
import type { Arrival } from './ordered-consumer.ts';
import { readArrivals } from './read.ts';
import { timeOfNanos } from './jetstream-reply.ts';
import { rawRecordOf, type RecordBytes, type RecordStream } from '../record-bytes.ts';
import type { RawRecord, RecordRange, RawRecords } from '../raw-records.ts';

const READ_MS = 5_000;
const BATCH = 500;
/** The server ends a batch before it exceeds this. */
const BATCH_BYTES = 1024 * 1024;

/**
 * More records in a row than this are read with a consumer: the server takes a fifth of the time
 * for each, 5 us in place of 28, but some milliseconds to make one.
 */
const FEW = 1_000;
const ARRIVALS_MAX = 1_000;

/** Reads the EVENTS stream. */
export function createJetStreamRawRecords(
  connection: JetStreamConnection,
): RawRecords & RecordStream {
  async function* readBytes({ after, upTo }: { after: number; upTo: number }) {
    await requireAll(connection, upTo);
    const all = { subjects: filters.all, batchMax: ARRIVALS_MAX };
    for await (const arrivals of readArrivals(connection, all, { sequence: after }, upTo))
      if (arrivals.length > 0) yield arrivals.map(bytesOf);
  }
  async function* readMany(range: RecordRange) {
    for await (const records of readBytes(range)) yield records.map(rawRecordOf);
  }
  async function* readFew(range: RecordRange): AsyncGenerator<RawRecord[], void, void> {
    const { after, upTo } = range;
    const filter = filterOf(range);
    await requireAll(connection, upTo);
    const ask = (next: number) => {
      const batch = Math.min(BATCH, upTo - next + 1);
      const query = { seq: next, batch, max_bytes: BATCH_BYTES };
      const filtered = filter === undefined ? query : { ...query, next_by_subj: filter };
      const answer = getMany(connection, EVENTS_STREAM, filtered, READ_MS);
      answer.catch(() => undefined); // it is awaited below, unless the reader has left
      return answer;
    };
    let next = after + 1;
    for (let coming = next <= upTo ? ask(next) : null; coming !== null;) {
      const stored = await coming;
      const last = stored.at(-1);
      if (last === undefined) return requireNone(connection, { next, upTo, filter });
      next = last.sequence + 1;
      // The server reads the next batch while the reader works on this one.
      coming = next <= upTo ? ask(next) : null;
      const wanted = stored.filter(({ sequence }) => sequence <= upTo);
      if (wanted.length > 0) yield wanted;
    }
  }
  return {
    readAll: readBytes,
    read: (range) =>
      filterOf(range) === undefined && range.upTo - range.after > FEW
        ? readMany(range)
        : readFew(range),
  };
}

function bytesOf({ message, sequence, storedNanos }: Arrival): RecordBytes {
  const headers = headerBytes(message);
  if (headers === null) throw new TypeError('the bytes of a message are not accessible');
  const { subject, data: body } = message;
  return { sequence, storedAt: timeOfNanos(storedNanos), subject, headers, body };
}

/** One filter, because a direct get accepts only one; undefined: all messages. */
function filterOf(range: RecordRange): string | undefined {
  if ('filter' in range) return range.filter;
  return range.organizationId === null ? undefined : filtersFor(range.organizationId, null)[0];
}

/** @throws Unavailable if the stream does not hold all messages up to there yet */
async function requireAll(connection: JetStreamConnection, end: number): Promise<void> {
  const { state } = await requestWithRetry(connection, READ_MS, () =>
    connection.jsm.streams.info(EVENTS_STREAM),
  );
  if (state.last_seq < end)
    throw new Unavailable(
      'event-log',
      new Error(`${EVENTS_STREAM} holds ${state.last_seq} of ${end}`),
    );
}

/**
 * Asks the leader whether messages follow. A replica that lags may have answered that none do, and
 * the missing messages would go unnoticed.
 * @throws Unavailable if the leader has more
 */
async function requireNone(
  connection: JetStreamConnection,
  { next, upTo, filter = '>' }: { next: number; upTo: number; filter: string | undefined },
): Promise<void> {
  const query = { seq: next, next_by_subj: filter };
  const more = await requestWithRetry(connection, READ_MS, () =>
    connection.jsm.streams.getMessage(EVENTS_STREAM, query),
  );
  if (more !== null && more.seq <= upTo)
    throw new Unavailable(
      'event-log',
      new Error(`${EVENTS_STREAM} has events that its copy lacks`),
    );
}
