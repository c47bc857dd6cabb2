import { JetStreamApiError, type StoredMsg } from '@nats-io/jetstream';
import {
  ADVISORY_STREAM,
  EVENTS_STREAM,
  DEAD_LETTERS_STREAM,
  DEAD_LETTER_SUBJECTS,
  deadLetterSubject,
} from '#events/subjects.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import {
  requestWithRetry,
  isWrongLastSequence,
} from '#src/kernel/event-store/jetstream/request.ts';
import { redeliver } from './redelivery.ts';
import {
  deadLettersMax,
  type NewDeadLetter,
  type DeadLetter,
  type DeadLetterRef,
  type DeadLetterStore,
} from '../dead-letters.ts';

const ANSWER_MS = 2_000;
/** Messages of one answer. */
const BATCH = 500;
/** Of the removal of a message that another caller has removed before. */
const GONE = { sequenceNotFound: 10043, deleteFailed: 10057, why: 'no message found' };

/**
 * The stored record. `skippedBy`: the operator who decided to skip it; null without a decision.
 * `skippedFor`: why, if the operator said so. `attempts`: those that failed; absent: one.
 */
type Record = NewDeadLetter & {
  at: string;
  skippedBy: string | null;
  skippedFor?: string;
  attempts?: number;
};
type Advisory = {
  stream: string;
  consumer: string;
  stream_seq: number;
  deliveries: number;
  reason?: string;
  timestamp: string;
};

/**
 * Dead letters of projections are in a stream of their own, one subject per event. Those of work
 * queues are in the server's advisories, which are kept for 30 days; a decision on one of them
 * removes the advisory.
 */
export function createJetStreamDeadLetters(connection: JetStreamConnection): DeadLetterStore {
  const { jsm } = connection;
  const put = (record: Record, isFirst: boolean) => putRecord(connection, record, isFirst);

  async function recordOf({ by, sequence }: DeadLetterRef): Promise<Record | undefined> {
    const found = (await records()).map(({ record }) => record);
    return found.find((record) => record.by === by && record.sequence === sequence);
  }

  async function remove(stream: string, sequence: number): Promise<void> {
    await requestWithRetry(connection, ANSWER_MS, async () => {
      try {
        await jsm.streams.deleteMessage(stream, sequence, false);
      } catch (error) {
        if (!isGone(error)) throw error;
      }
    });
  }

  async function records(): Promise<{ record: Record; stored: number }[]> {
    const found = await allOf(connection, DEAD_LETTERS_STREAM);
    return found.map((message) => ({ record: message.json<Record>(), stored: message.seq }));
  }
  async function advisories(): Promise<{ event: DeadLetter; stored: number }[]> {
    const found = await allOf(connection, ADVISORY_STREAM);
    return found.map((message) => ({
      event: ofAdvisory(message.json<Advisory>()),
      stored: message.seq,
    }));
  }
  async function removeAdvisories(by: string, sequence: number): Promise<void> {
    for (const { event, stored } of await advisories())
      if (event.by === by && event.sequence === sequence) await remove(ADVISORY_STREAM, stored);
  }

  return {
    add: (event) => put({ ...event, at: new Date().toISOString(), skippedBy: null }, true),
    async list() {
      const byProjections = (await records())
        .filter(({ record }) => record.skippedBy === null)
        .map(({ record }) => ofProjection(record));
      const byInboxes = new Map<string, DeadLetter>();
      for (const { event } of await advisories())
        byInboxes.set(`${event.stream} ${event.by} ${event.sequence}`, event);
      return [...byProjections, ...byInboxes.values()]
        .toSorted((a, b) => a.sequence - b.sequence || a.by.localeCompare(b.by))
        .slice(0, deadLettersMax);
    },
    async redeliver(event) {
      const redelivered = await redeliver(connection, event);
      if (redelivered.outcome === 'mended') await removeAdvisories(event.by, event.sequence);
      return redelivered;
    },
    async failedAgain(event) {
      const known = await recordOf(event);
      if (known !== undefined) await put({ ...known, attempts: (known.attempts ?? 1) + 1 }, false);
    },
    async skip({ by, sequence }, operator, reason) {
      const known = await recordOf({ by, sequence });
      if (known !== undefined) await put(skipped(known, operator, reason), false);
      await removeAdvisories(by, sequence);
    },
    async resolve({ by, sequence }) {
      for (const { record, stored } of await records())
        if (record.by === by && record.sequence === sequence)
          await remove(DEAD_LETTERS_STREAM, stored);
      await removeAdvisories(by, sequence);
    },
  };
}

function skipped(record: Record, skippedBy: string, skippedFor?: string): Record {
  return { ...record, skippedBy, ...(skippedFor !== undefined && { skippedFor }) };
}

function ofProjection({ by, sequence, subject, reason, at, attempts = 1 }: Record): DeadLetter {
  const place = { stream: EVENTS_STREAM, sequence, subject };
  return { by, kind: 'projection', ...place, reason, at, attempts };
}

function ofAdvisory(advisory: Advisory): DeadLetter {
  const { stream, consumer, stream_seq: sequence, deliveries: attempts, timestamp } = advisory;
  const reason = advisory.reason ?? `given up after ${attempts} deliveries`;
  const at = new Date(timestamp).toISOString();
  return { by: consumer, kind: 'work_queue', stream, sequence, subject: '', reason, at, attempts };
}

/** Stores the record of a dead letter. @param isFirst a record that is there already stays */
async function putRecord(
  connection: JetStreamConnection,
  record: Record,
  isFirst: boolean,
): Promise<void> {
  const expect = isFirst ? { expect: { lastSubjectSequence: 0 } } : {};
  const subject = deadLetterSubject(record.by, record.sequence);
  try {
    await requestWithRetry(connection, ANSWER_MS, () =>
      connection.js.publish(subject, JSON.stringify(record), expect),
    );
  } catch (error) {
    const isKnown = isFirst && isWrongLastSequence(error);
    if (!isKnown) throw error;
  }
}

/** The messages of a stream, oldest first; at most `deadLettersMax`. */
async function allOf(connection: JetStreamConnection, stream: string): Promise<StoredMsg[]> {
  const found: StoredMsg[] = [];
  const filter = stream === DEAD_LETTERS_STREAM ? DEAD_LETTER_SUBJECTS[0] : undefined;
  for (let seq = 1; found.length < deadLettersMax;) {
    const some = await requestWithRetry(connection, ANSWER_MS, async () => {
      const query = { seq, batch: BATCH, next_by_subj: filter ?? '>' };
      const messages: StoredMsg[] = [];
      for await (const message of await connection.jsm.direct.getBatch(stream, query))
        messages.push(message);
      return messages;
    }).catch((error: unknown) => {
      if (isNothing(error)) return [];
      throw error;
    });
    found.push(...some);
    if (some.length < BATCH) break;
    seq = (some.at(-1)?.seq ?? seq) + 1;
  }
  return found;
}

/**
 * Whether a message was not removed because it is gone. The server has two answers for that; the
 * second one, of a whole block that is gone, has the status of an outage.
 */
function isGone(error: unknown): boolean {
  if (!(error instanceof JetStreamApiError)) return false;
  const { code, message } = error;
  return code === GONE.sequenceNotFound || (code === GONE.deleteFailed && message === GONE.why);
}

/** Whether the error is the server's answer that no message is left. */
function isNothing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 404;
}
