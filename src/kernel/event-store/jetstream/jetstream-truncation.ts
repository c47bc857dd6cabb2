import type { ConsumerInfo } from '@nats-io/jetstream';
import { isPublic } from '#events/public-event.ts';
import { EVENTS_STREAM, filters, parseSubject, PUBLIC_STREAM } from '#events/subjects.ts';
import type { JetStreamConnection } from './connection.ts';
import type { LogTruncation } from '../truncation.ts';
import { requestWithRetry } from './request.ts';

const [TENANTS = ''] = filters.tenants;
const READ_MS = 5_000;
/** Of one step: the server deletes whole files of messages, and rewrites one. */
const PURGE_MS = 30_000;
/**
 * The stream stores nothing while messages are purged, some 3 us for each as measured with 250,000
 * sessions; and after each purge while the server collects the subjects that are left for its
 * `index.db`, 1 us for each. An append may wait 5 s. Small steps would stop a large stream often,
 * so a step grows with the subjects: both parts of its pause are about equal then.
 */
const PURGE_STEP_MIN = 500_000;
const STEP_OF_SUBJECTS = 0.25;

/**
 * Purges the streams EVENTS and PUBLIC; needs the permissions of the NATS user `archivist`.
 * @param purgeStepMin messages that are purged at once, at least
 */
export function createJetStreamTruncation(
  connection: JetStreamConnection,
  purgeStepMin = PURGE_STEP_MIN,
): LogTruncation {
  const { jsm } = connection;

  async function lookAt(stream: string) {
    const info = await requestWithRetry(connection, READ_MS, () => jsm.streams.info(stream));
    const { first_seq: first, last_seq: last, messages, num_subjects: subjects = 0 } = info.state;
    return { first, last, messages, subjects };
  }

  /**
   * Purges from the first message on, in steps; nothing if `upTo` precedes it. An answer that was
   * lost is asked for again: a purge may be repeated.
   */
  async function purge(stream: string, first: number, upTo: number): Promise<void> {
    for (let last = first - 1; last < upTo;) {
      const { subjects } = await lookAt(stream);
      const step = Math.max(purgeStepMin, Math.floor(STEP_OF_SUBJECTS * subjects));
      last = Math.min(last + step, upTo);
      const seq = last + 1;
      await requestWithRetry(connection, PURGE_MS, () => jsm.streams.purge(stream, { seq }));
    }
  }

  /**
   * The sequence in EVENTS of a message of PUBLIC; null: it was purged meanwhile.
   * @throws Error if it has none
   */
  async function publishedEvent(sequence: number): Promise<number | null> {
    const stored = await requestWithRetry(connection, READ_MS, () =>
      jsm.streams.getMessage(PUBLIC_STREAM, { seq: sequence }),
    );
    if (stored === null) return null;
    const header = stored.header.get('ce-sequence');
    const event = Number(header);
    if (header === '' || !Number.isSafeInteger(event))
      throw new Error(`message ${sequence} of PUBLIC has no sequence of its event`);
    return event;
  }

  return {
    async truncate(upTo) {
      const { first, last } = await lookAt(EVENTS_STREAM);
      if (upTo >= last) throw new RangeError(`${upTo} would remove the newest event, ${last}`);
      await purge(EVENTS_STREAM, first, upTo);
    },

    async truncatePublic(upTo) {
      const { first, last, messages } = await lookAt(PUBLIC_STREAM);
      if (messages === 0) return;
      let [gone, kept] = [first - 1, last];
      while (kept - gone > 1) {
        const middle = Math.floor((gone + kept) / 2);
        const event = await publishedEvent(middle);
        if (event === null || event <= upTo) gone = middle;
        else kept = middle;
      }
      await purge(PUBLIC_STREAM, first, gone);
    },

    async heldBackTo() {
      const places = await requestWithRetry(connection, READ_MS, async () => {
        const infos: ConsumerInfo[] = [];
        for await (const info of jsm.consumers.list(EVENTS_STREAM)) infos.push(info);
        return infos.filter(isBehind).map(({ name, ack_floor }) => ({
          sequence: ack_floor.stream_seq,
          by: name,
        }));
      });
      const { last, messages } = await lookAt(PUBLIC_STREAM);
      const place = messages === 0 ? null : await publishedEvent(last);
      const published = place === null ? null : await publishedUpTo(connection, place);
      if (published !== null) places.push({ sequence: published, by: PUBLIC_STREAM });
      return places.toSorted((one, other) => one.sequence - other.sequence)[0] ?? null;
    },
  };
}

/**
 * The event before the first one that is still to be published, after the one at `place`; null:
 * there is none.
 */
async function publishedUpTo(
  connection: JetStreamConnection,
  place: number,
): Promise<number | null> {
  for (let last = place; ;) {
    const query = { seq: last + 1, next_by_subj: TENANTS };
    const next = await requestWithRetry(connection, READ_MS, () =>
      connection.jsm.streams.getMessage(EVENTS_STREAM, query),
    );
    if (next === null) return null;
    const type = parseSubject(next.subject)?.type;
    if (type === undefined || isPublic(type)) return next.seq - 1;
    last = next.seq;
  }
}

/** Whether it is a work queue with unfinished items. Readers' consumers are not durable. */
function isBehind({ config, num_pending, num_ack_pending }: ConsumerInfo): boolean {
  return config.durable_name !== undefined && (num_pending > 0 || num_ack_pending > 0);
}
