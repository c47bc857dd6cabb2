import { JetStreamApiError } from '@nats-io/jetstream';
import { EVENTS_STREAM } from '#events/subjects.ts';
import type { JetStreamConnection } from './connection.ts';
import { requestWithRetry } from './request.ts';

const READ_MS = 2_000;
/** Error code: the server does not understand the request. */
const BAD_REQUEST = 10003;

/**
 * Sequence of the newest message stored before the time; if that was purged or there is none, the
 * sequence before the first message. The leader is asked for the first message at or after the
 * time. Only a prefix is ever purged, so any other message has the one before it.
 */
export async function sequenceBefore(
  connection: JetStreamConnection,
  time: string,
): Promise<number> {
  const { last: end } = await boundsOf(connection);
  try {
    const after = await read(connection, { start_time: time });
    return after === null ? end : after.seq - 1;
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== BAD_REQUEST) throw error;
    return sequenceByHalves(connection, time);
  }
}

/**
 * The same for an older server, which cannot be asked by time: a binary search, 20 reads among a
 * million messages.
 */
export async function sequenceByHalves(
  connection: JetStreamConnection,
  time: string,
): Promise<number> {
  const at = Date.parse(time);
  const { first, last } = await boundsOf(connection);
  let [before, notBefore] = [first - 1, last + 1];
  while (notBefore - before > 1) {
    const seq = Math.floor((before + notBefore) / 2);
    const stored = await read(connection, { seq });
    if (stored !== null && stored.time.getTime() < at) before = seq;
    else notBefore = seq;
  }
  return before;
}

async function boundsOf(connection: JetStreamConnection) {
  const { state } = await requestWithRetry(connection, READ_MS, () =>
    connection.jsm.streams.info(EVENTS_STREAM),
  );
  return { first: Math.max(1, state.first_seq), last: state.last_seq };
}

/** @throws Unavailable('event-log') */
function read(connection: JetStreamConnection, query: { seq: number } | { start_time: string }) {
  return requestWithRetry(connection, READ_MS, () =>
    connection.jsm.streams.getMessage(EVENTS_STREAM, query as { seq: number }),
  );
}
