import type { RecordedEvent } from '#events/events.ts';
import { EVENTS_STREAM, filters, subjectMatcher } from '#events/subjects.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { createBackOff } from '#src/kernel/async/back-off.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { JetStreamConnection } from './connection.ts';
import type { ReadOptions } from '../event-store.ts';
import { decodeAll } from './message.ts';
import { isServerFilter, openReader, ReaderLost, type Arrival } from './ordered-consumer.ts';
import { isOutage, requestWithRetry } from './request.ts';

/** Events of one batch, unless the caller says otherwise. */
export const BATCH_MAX = 500;
const READ_MS = 2_000;
/** Stored events arrive within milliseconds. After this long without any the read fails. */
const SILENCE_MS = 5_000;
/**
 * So close to its end a range is read without a filter: its last event then arrives and ends it.
 * With a filter the server has to be asked whether a matching event follows. So many messages take
 * some milliseconds, about as long as the question.
 */
const NEAR = 1_000;

export type Selection = Omit<ReadOptions, 'after' | 'upTo'>;

/** Where a read has come to; a caller that reads on after a failure starts there. */
export type Place = { sequence: number };

/**
 * The events of a range, up to and including `upTo`, which must not be beyond the end of the
 * stream.
 * @param place moves with each batch
 * @throws Unavailable('event-log')
 */
export async function* readRange(
  connection: JetStreamConnection,
  options: Selection,
  place: Place,
  upTo: number,
): AsyncGenerator<RecordedEvent[], void, void> {
  let readUpTo = place.sequence;
  for await (const arrivals of readArrivals(connection, options, place, upTo)) {
    const { events, refusal } = decodeAll(arrivals, options);
    if (refusal !== null) place.sequence = events.at(-1)?.sequence ?? readUpTo;
    readUpTo = place.sequence;
    if (events.length > 0) yield events;
    if (refusal !== null) throw refusal.error;
  }
}

/**
 * The messages of a range, not decoded, in batches, which may be empty.
 *
 * How it knows that no matching message is left: near its end the range is read without a filter.
 * Farther away, when the server counts nothing pending, its leader is asked for the next match. If
 * the last match is far from the end, that costs the server some 0.3 ms per 1,000 subjects that
 * match: nothing for one aggregate, and once for the backlog of a quiet organization.
 * @param place moves with each batch
 * @throws Unavailable('event-log')
 */
export async function* readArrivals(
  connection: JetStreamConnection,
  { signal, ...options }: Pick<Selection, 'subjects' | 'batchMax' | 'signal'>,
  place: Place,
  upTo: number,
): AsyncGenerator<Arrival[], void, void> {
  const stop = new AbortController();
  const signals = signal === undefined ? [stop.signal] : [stop.signal, signal];
  const stopped = AbortSignal.any(signals);
  const backOff = createBackOff();
  const wait: Wait = { deadline: performance.now() + SILENCE_MS };
  try {
    while (place.sequence < upTo && !stopped.aborted) {
      try {
        yield* pass(connection, { ...options, signal: stopped }, place, upTo, wait);
      } catch (error) {
        if (!(error instanceof ReaderLost) && !isOutage(error)) throw error;
        if (performance.now() > wait.deadline) throw new Unavailable('event-log', error);
        await backOff.pause(stopped);
      }
    }
  } finally {
    stop.abort();
  }
}

/** Until when the next message must arrive. Only waits for the server count. */
type Wait = { deadline: number };

/** Reads with one consumer: to the end of the range, or until a filter is no longer needed. */
async function* pass(
  connection: JetStreamConnection,
  options: Pick<Selection, 'subjects' | 'batchMax'> & { signal: AbortSignal },
  place: Place,
  upTo: number,
  wait: Wait,
): AsyncGenerator<Arrival[], void, void> {
  const { subjects, signal, batchMax = BATCH_MAX } = options;
  const isFiltered = isServerFilter(subjects) && upTo - place.sequence > NEAR;
  const filter = isFiltered ? subjects : filters.all;
  const position = { after: place.sequence, subjects: filter, batchMax, signal };
  const isWanted = subjectMatcher(subjects);
  const openedFrom = performance.now();
  await using reader = await openReader(connection, position);
  // The server may have counted for seconds: that is no wait for a message.
  wait.deadline += performance.now() - openedFrom;
  for (let pending = reader.pendingAtStart; place.sequence < upTo;) {
    if (isFiltered && pending === 0) {
      if (upTo - place.sequence <= NEAR) return;
      if (await isNoneLeft(connection, subjects, place.sequence, upTo)) place.sequence = upTo;
      if (place.sequence >= upTo) return;
    }
    const leftMs = wait.deadline - performance.now();
    const arrivals = await within(leftMs, reader.take(batchMax), () => null);
    if (arrivals === null) throw new Unavailable('event-log');
    const last = arrivals.at(-1);
    if (last === undefined) return;
    place.sequence = Math.min(upTo, last.sequence);
    pending = last.pending;
    yield arrivals.filter(({ sequence, message }) => sequence <= upTo && isWanted(message.subject));
    wait.deadline = performance.now() + SILENCE_MS;
  }
}

/** Whether the leader has no matching message after the sequence, up to `upTo`. */
async function isNoneLeft(
  connection: JetStreamConnection,
  subjects: readonly string[],
  after: number,
  upTo: number,
): Promise<boolean> {
  const found = await Promise.all(
    subjects.map((subject) => {
      const query = { seq: after + 1, next_by_subj: subject };
      return requestWithRetry(connection, READ_MS, () =>
        connection.jsm.streams.getMessage(EVENTS_STREAM, query),
      );
    }),
  );
  return found.every((stored) => stored === null || stored.seq > upTo);
}
