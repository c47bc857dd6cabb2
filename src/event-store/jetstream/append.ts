import { JetStreamApiError, type ApiError } from '@nats-io/jetstream';
import { headers, nuid, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { EVENTS_STREAM, filterOf } from '#events/subjects.ts';
import { Unavailable } from '#src/errors.ts';
import { commandsOf, membersOf, type Member } from '../batch.ts';
import type { JetStreamConnection } from './connect.ts';
import type { Change, EventLog } from '../event-store.ts';
import { ask, isOutage } from './request.ts';

/** The log's time to answer a publish. */
const PUBLISH_MS = 2_000;
/** An append's whole time, with finding out what became of a publish. */
const APPEND_MS = 5_000;

/**
 * Wrong last sequence; the same while a rival is under way (no number known); repeated event id.
 */
const REFUSED = new Set([10071, 10164, 10201]);
/** The batch came in incomplete: the connection broke within it. Nothing was stored. */
const INCOMPLETE = 10176;

const CONFLICT = { outcome: 'conflict' } as const;

/** Commands with a lost answer that are kept in mind, and events searched for one of them. */
const DOUBTFUL_MAX = 1_000;
const SEARCH_MAX = 100;

type Answer =
  | { kind: 'stored'; last: number }
  /** The log said no: nothing was stored by this publish, though an earlier one may have been. */
  | { kind: 'refused' }
  /** Stored, not stored, or still on its way. */
  | { kind: 'doubtful' };

/**
 * The one place that publishes events. A single event is one guarded publish; several are an atomic
 * batch, each aggregate's first event guarded. The stock client's batch drops the guards silently,
 * so the messages are written here.
 */
export function createAppend(connection: JetStreamConnection): EventLog['append'] {
  const doubtful = new Set<string>();

  return async function append(changes) {
    const startedAt = performance.now();
    const members = membersOf(changes);
    const { first, commandId, commandIds } = commandsOf(changes);
    // Written while disconnected it might go out much later, when nobody waits for it any more.
    if (!(await connection.whenConnected(PUBLISH_MS))) throw new Unavailable('event-log');
    const answer = await publish(connection, members);
    if (answer.kind === 'stored') {
      for (const id of commandIds) doubtful.delete(id);
      const firstSequence = answer.last - members.length + 1;
      return { outcome: 'appended', sequences: members.map((_, index) => firstSequence + index) };
    }
    if (answer.kind === 'doubtful') for (const id of commandIds) remember(doubtful, id);
    const leftMs = APPEND_MS - (performance.now() - startedAt);
    const isStored = await ask(connection, leftMs, () =>
      isInLog(connection, first, commandId, doubtful.has(commandId)),
    );
    if (isStored) return { outcome: 'repeated' };
    return doubtful.has(commandId) ? { outcome: 'conflict', isDoubtful: true } : CONFLICT;
  };
}

async function publish(
  connection: JetStreamConnection,
  members: readonly Member[],
): Promise<Answer> {
  let reply: Msg;
  try {
    reply = await connection.whileConnected(send(connection.nc, members));
  } catch (error) {
    if (!isOutage(error)) throw error;
    return { kind: 'doubtful' };
  }
  const { error, seq, duplicate } = reply.json<{
    error?: ApiError;
    seq: number;
    duplicate?: boolean;
  }>();
  if (error === undefined) return duplicate ? { kind: 'refused' } : { kind: 'stored', last: seq };
  if (REFUSED.has(error.err_code)) return { kind: 'refused' };
  if (error.err_code === INCOMPLETE) return { kind: 'doubtful' };
  const cause = new JetStreamApiError(error);
  // 429: too many batches are open at once.
  if (error.code >= 500 || error.code === 429) throw new Unavailable('event-log', cause);
  throw cause;
}

/** All members in one write; only the last asks for an answer, so a batch is one round trip. */
function send(nc: NatsConnection, members: readonly Member[]): Promise<Msg> {
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
      fields.set('Nats-Batch-Id', batchId);
      fields.set('Nats-Batch-Sequence', String(index + 1));
      if (isLast) fields.set('Nats-Batch-Commit', '1');
    }
    const options = { headers: fields, timeout: PUBLISH_MS };
    if (isLast) return nc.request(message.subject, message.body, options);
    nc.publish(message.subject, message.body, { headers: fields });
  }
  throw new RangeError('an append of nothing');
}

function remember(doubtful: Set<string>, commandId: string): void {
  doubtful.add(commandId);
  const [oldest] = doubtful;
  if (doubtful.size > DOUBTFUL_MAX && oldest !== undefined) doubtful.delete(oldest);
}

/**
 * Whether the log's leader holds an event of the command, as the aggregate's last one. For a
 * command with a lost answer also before it: another may have moved the aggregate on since.
 */
async function isInLog(
  { jsm }: JetStreamConnection,
  { aggregate, expectedSequence }: Change,
  commandId: string,
  isDoubtful: boolean,
): Promise<boolean> {
  const filter = filterOf(aggregate);
  const last = await jsm.streams.getMessage(EVENTS_STREAM, { last_by_subj: filter });
  if (last === null) return false;
  if (last.header.get('ce-commandid') === commandId) return true;
  if (!isDoubtful) return false;
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
