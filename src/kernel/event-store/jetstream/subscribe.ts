import type { RecordedEvent } from '#events/events.ts';
import { EVENTS_STREAM, subjectMatcher } from '#events/subjects.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { createBackOff } from '#src/kernel/async/back-off.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { JetStreamConnection } from './connection.ts';
import type { SubscribeOptions } from '../event-store.ts';
import { isOutage } from './request.ts';
import { decodeAll } from './message.ts';
import { isServerFilter, openReader, ReaderLost } from './ordered-consumer.ts';
import { BATCH_MAX, readRange, type Place } from './read.ts';

const BACKOFF_MS = 50;
const BACKOFF_MAX_MS = 1_000;

/**
 * Subscribes with one reader after the other: when one is lost, the next begins after the last
 * event that was yielded, so no event is missed or doubled. The pause between two attempts is 50
 * ms, doubled each time, at most a second; after a reconnect at most 50 ms. An error that is not an
 * outage is thrown: it ends a command, while a process's shared reader (`shared-subscription.ts`)
 * tries again.
 *
 * A reader without a filter knows its position from every message. One with a filter does not
 * learn of messages that do not match: if the caller wants positions, it reads up to the end as
 * it is now, reports that, and then receives what is new.
 */
export async function* follow(
  connection: JetStreamConnection,
  options: SubscribeOptions,
): AsyncGenerator<RecordedEvent[], void, void> {
  const { subjects, signal, onPosition } = options;
  const backOff = createBackOff(BACKOFF_MS, BACKOFF_MAX_MS);
  const readsFirst = onPosition !== undefined && isServerFilter(subjects);
  let place: Place | null = null;
  while (!signal.aborted) {
    try {
      place ??= { sequence: options.after === 'end' ? await endOf(connection) : options.after };
      if (readsFirst) yield* readToEnd(connection, options, place);
      onPosition?.(place.sequence);
      yield* receive(connection, options, place, () => backOff.reset());
      return;
    } catch (error) {
      options.onReceiving?.(false);
      const isAgain =
        error instanceof ReaderLost || error instanceof Unavailable || isOutage(error);
      if (!isAgain) throw error;
    }
    await backOff.pause(signal);
    while (!connection.isConnected() && !signal.aborted) await sleep(BACKOFF_MS, signal);
  }
}

/** Yields the stored events, until the place is the end of the store. */
async function* readToEnd(
  connection: JetStreamConnection,
  options: SubscribeOptions,
  place: Place,
): AsyncGenerator<RecordedEvent[], void, void> {
  const end = await endOf(connection);
  if (place.sequence < end) yield* readRange(connection, options, place, end);
}

/** Yields arriving events; returns when the signal aborts. @throws ReaderLost */
async function* receive(
  connection: JetStreamConnection,
  options: SubscribeOptions,
  place: Place,
  onArrival: () => void,
): AsyncGenerator<RecordedEvent[], void, void> {
  const { subjects, signal, batchMax = BATCH_MAX } = options;
  const onHeartbeat = () => options.onReceiving?.(true);
  const position = { after: place.sequence, subjects, signal, batchMax, onHeartbeat };
  const isWanted = subjectMatcher(subjects);
  await using reader = await openReader(connection, position);
  for (;;) {
    const arrivals = await reader.take(batchMax);
    if (arrivals.length === 0) return;
    onArrival();
    options.onReceiving?.(true);
    const wanted = arrivals.filter(({ message }) => isWanted(message.subject));
    const { events, refusal } = decodeAll(wanted, options);
    const last = refusal === null ? arrivals.at(-1) : events.at(-1);
    place.sequence = last?.sequence ?? place.sequence;
    if (events.length > 0) yield events;
    if (refusal !== null) throw refusal.error;
    options.onPosition?.(place.sequence);
  }
}

async function endOf(connection: JetStreamConnection): Promise<number> {
  const { state } = await connection.whileConnected(connection.jsm.streams.info(EVENTS_STREAM));
  return state.last_seq;
}
