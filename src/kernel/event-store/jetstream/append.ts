import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
import { JetStreamApiError, type ApiError } from '@nats-io/jetstream';
import { headers, nuid, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { EVENTS_STREAM, streamFilter } from '#events/subjects.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { commandsOf, batchMessages, type BatchMessage } from '../batch.ts';
import type { JetStreamConnection } from './connection.ts';
import type { StreamAppend, EventStore } from '../event-store.ts';
import { requestWithRetry, isOutage, WRONG_LAST_SEQUENCE } from './request.ts';

/** How long the server may take to answer a publish. */
const PUBLISH_MS = 2_000;
/** The time limit of a whole append, with finding out what became of a publish. */
const APPEND_MS = 5_000;

/** Error codes: another writer was first; 10201: repeated event id. */
const REFUSED = new Set([...WRONG_LAST_SEQUENCE, 10201]);
/**
 * Error code: the batch arrived incomplete because the connection broke within it. Nothing was
 * stored.
 */
const INCOMPLETE = 10176;

/** The headers of a batch's messages; `commit` is on the last one alone. */
export const BATCH = {
  id: 'Nats-Batch-Id',
  sequence: 'Nats-Batch-Sequence',
  commit: 'Nats-Batch-Commit',
} as const;

const CONFLICT = { outcome: 'conflict' } as const;

/**
 * The maximum of commands with a lost answer that are remembered, and of events searched for one of
 * them.
 */
const UNANSWERED_MAX = 1_000;
const SEARCH_MAX = 100;

type Answer =
  | { kind: 'stored'; last: number }
  /**
   * The server refused: nothing was stored by this publish, though an earlier one may have been.
   */
  | { kind: 'refused' }
  /** Stored, not stored, or still in transit. */
  | { kind: 'unanswered' };

/**
 * The one place that publishes events. A single event is one publish with a check; several are an
 * atomic batch in which each aggregate's first event carries a check. The stock client's batch
 * drops these checks silently, so the messages are written here.
 */
export function createAppend(connection: JetStreamConnection): EventStore['append'] {
  const unanswered = new BoundedMap<string, true>(UNANSWERED_MAX);

  return async function append(changes) {
    const startedAt = performance.now();
    const members = batchMessages(changes);
    const { first, commandId, commandIds } = commandsOf(changes);
    // A publish written while disconnected might be sent much later, after its caller has given up.
    if (!(await connection.whenConnected(PUBLISH_MS))) throw new Unavailable('event-log');
    const answer = await publish(connection, members);
    if (answer.kind === 'stored') {
      for (const id of commandIds) unanswered.delete(id);
      const firstSequence = answer.last - members.length + 1;
      return { outcome: 'appended', sequences: members.map((_, index) => firstSequence + index) };
    }
    if (answer.kind === 'unanswered') for (const id of commandIds) unanswered.set(id, true);
    const leftMs = APPEND_MS - (performance.now() - startedAt);
    const isStored = await requestWithRetry(connection, leftMs, () =>
      isInLog(connection, first, commandId, unanswered.has(commandId)),
    );
    if (isStored) return { outcome: 'duplicate' };
    return unanswered.has(commandId) ? { outcome: 'conflict', outcomeUnknown: true } : CONFLICT;
  };
}

async function publish(
  connection: JetStreamConnection,
  members: readonly BatchMessage[],
): Promise<Answer> {
  let reply: Msg;
  try {
    reply = await connection.whileConnected(send(connection.nc, members));
  } catch (error) {
    if (!isOutage(error)) throw error;
    return { kind: 'unanswered' };
  }
  const { error, seq, duplicate } = reply.json<{
    error?: ApiError;
    seq: number;
    duplicate?: boolean;
  }>();
  if (error === undefined) return duplicate ? { kind: 'refused' } : { kind: 'stored', last: seq };
  if (REFUSED.has(error.err_code)) return { kind: 'refused' };
  if (error.err_code === INCOMPLETE) return { kind: 'unanswered' };
  const cause = new JetStreamApiError(error);
  // 429: too many batches are open at once.
  if (error.code >= 500 || error.code === 429) throw new Unavailable('event-log', cause);
  throw cause;
}

/**
 * Writes all messages at once. Only the last one requests an answer, so that a batch takes one
 * round trip.
 */
function send(nc: NatsConnection, members: readonly BatchMessage[]): Promise<Msg> {
  const batchId = nuid.next();
  for (const [index, { message, id, expected }] of members.entries()) {
    const isLast = index === members.length - 1;
    const fields = headers();
    for (const [name, value] of Object.entries(message.headers)) fields.set(name, value);
    fields.set('Nats-Msg-Id', id);
    if (expected !== null) {
      fields.set('Nats-Expected-Last-Subject-Sequence', String(expected.sequence));
      fields.set('Nats-Expected-Last-Subject-Sequence-Subject', expected.filter);
    }
    if (members.length > 1) {
      fields.set(BATCH.id, batchId);
      fields.set(BATCH.sequence, String(index + 1));
      if (isLast) fields.set(BATCH.commit, '1');
    }
    const options = { headers: fields, timeout: PUBLISH_MS };
    if (isLast) return nc.request(message.subject, message.body, options);
    nc.publish(message.subject, message.body, { headers: fields });
  }
  throw new RangeError('an append without events');
}

/**
 * Whether the leader holds an event of the command as the aggregate's last one. For a command with
 * a lost answer, earlier events are searched too: another command may have changed the aggregate
 * since.
 */
async function isInLog(
  { jsm }: JetStreamConnection,
  { aggregate, expectedSequence }: StreamAppend,
  commandId: string,
  wasUnanswered: boolean,
): Promise<boolean> {
  const filter = streamFilter(aggregate);
  const last = await jsm.streams.getMessage(EVENTS_STREAM, { last_by_subj: filter });
  if (last === null) return false;
  if (last.header.get('ce-commandid') === commandId) return true;
  if (!wasUnanswered) return false;
  let after = expectedSequence;
  for (let step = 0; step < SEARCH_MAX; step++) {
    const query = { seq: after + 1, next_by_subj: filter };
    const next = await jsm.streams.getMessage(EVENTS_STREAM, query);
    if (next === null || next.seq >= last.seq) return false;
    if (next.header.get('ce-commandid') === commandId) return true;
    after = next.seq;
  }
  return false;
}
