import { JetStreamApiError } from '@nats-io/jetstream';
import { EVENTS_STREAM } from '#events/subjects.ts';
import type { JetStreamConnection } from './connect.ts';
import { ask } from './request.ts';

const READ_MS = 2_000;
/** The request is not understood. */
const BAD_REQUEST = 10003;

/**
 * The newest message that was stored before the time: the leader is asked for the first one that
 * was not. Nothing is ever deleted, so the one before it is there. 0 where there is none.
 */
export async function sequenceBefore(
  connection: JetStreamConnection,
  time: string,
): Promise<number> {
  const end = await endOf(connection);
  try {
    const after = await read(connection, { start_time: time });
    return after === null ? end : after.seq - 1;
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== BAD_REQUEST) throw error;
    return sequenceByHalves(connection, time);
  }
}

/** The same of an older server, which cannot be asked by time: 20 reads, one among a million. */
export async function sequenceByHalves(
  connection: JetStreamConnection,
  time: string,
): Promise<number> {
  const at = Date.parse(time);
  let [before, notBefore] = [0, (await endOf(connection)) + 1];
  while (notBefore - before > 1) {
    const seq = Math.floor((before + notBefore) / 2);
    const stored = await read(connection, { seq });
    if (stored !== null && stored.time.getTime() < at) before = seq;
    else notBefore = seq;
  }
  return before;
}

async function endOf(connection: JetStreamConnection): Promise<number> {
  const { state } = await ask(connection, READ_MS, () =>
    connection.jsm.streams.info(EVENTS_STREAM),
  );
  return state.last_seq;
}

/** @throws Unavailable('event-log') */
function read(connection: JetStreamConnection, query: { seq: number } | { start_time: string }) {
  return ask(connection, READ_MS, () =>
    connection.jsm.streams.getMessage(EVENTS_STREAM, query as { seq: number }),
  );
}
