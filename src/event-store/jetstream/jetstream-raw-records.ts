import { Unavailable } from '#src/errors.ts';
import { ARCHIVE_STREAM, EVENTS_STREAM, filtersFor } from '#events/subjects.ts';
import type { JetStreamConnection } from './connection.ts';
import { requestWithRetry } from './request.ts';
import { getMany } from './direct-get.ts';
import type { RawRecord, RecordRange, RawRecords } from '../raw-records.ts';

const READ_MS = 5_000;
const BATCH = 500;
/** The server ends a batch before it exceeds this. */
const BATCH_BYTES = 1024 * 1024;

/** Reads the EVENTS stream, or the archive of it, without a consumer. */
export function createJetStreamRawRecords(
  connection: JetStreamConnection,
  from: 'log' | 'archive',
): RawRecords {
  const stream = from === 'archive' ? ARCHIVE_STREAM : EVENTS_STREAM;

  async function* read(range: RecordRange): AsyncGenerator<RawRecord[], void, void> {
    const { after, upTo } = range;
    const filter = filterOf(range);
    await requireAll(connection, stream, upTo);
    for (let next = after + 1; next <= upTo;) {
      const batch = Math.min(BATCH, upTo - next + 1);
      const query = {
        seq: next,
        batch,
        max_bytes: BATCH_BYTES,
        ...(filter === undefined ? {} : { next_by_subj: filter }),
      };
      const stored = await getMany(connection, stream, query, READ_MS);
      const wanted = stored.filter(({ sequence }) => sequence <= upTo);
      if (wanted.length > 0) yield wanted;
      const last = stored.at(-1);
      if (last === undefined) return requireNone(connection, stream, { next, upTo, filter });
      next = last.sequence + 1;
    }
  }
  return { read };
}

/** One filter, because a direct get accepts only one; undefined: all messages. */
function filterOf(range: RecordRange): string | undefined {
  if ('filter' in range) return range.filter;
  return range.organizationId === null ? undefined : filtersFor(range.organizationId, null)[0];
}

/**
 * @throws Unavailable if the stream does not exist, or does not hold all messages up to there yet
 */
async function requireAll(
  connection: JetStreamConnection,
  stream: string,
  end: number,
): Promise<void> {
  const { state } = await requestWithRetry(connection, READ_MS, () =>
    connection.jsm.streams.info(stream),
  );
  if (state.last_seq < end)
    throw new Unavailable('event-log', new Error(`${stream} holds ${state.last_seq} of ${end}`));
}

/**
 * Asks the leader whether messages follow. A replica that lags may have answered that none do, and
 * the missing messages would go unnoticed.
 * @throws Unavailable if the leader has more
 */
async function requireNone(
  connection: JetStreamConnection,
  stream: string,
  { next, upTo, filter = '>' }: { next: number; upTo: number; filter: string | undefined },
): Promise<void> {
  const query = { seq: next, next_by_subj: filter };
  const more = await requestWithRetry(connection, READ_MS, () =>
    connection.jsm.streams.getMessage(stream, query),
  );
  if (more !== null && more.seq <= upTo)
    throw new Unavailable('event-log', new Error(`${stream} has events that its copy lacks`));
}
