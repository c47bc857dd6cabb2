import { MalformedEvent } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { EVENTS_STREAM } from '#events/subjects.ts';
import { createBackOff } from '#src/async/back-off.ts';
import { sleep } from '#src/async/sleep.ts';
import type { JetStreamConnection } from './connection.ts';
import type { SubscribeOptions } from '../event-store.ts';
import { isOutage } from './request.ts';
import { readEvent } from './message.ts';
import { openReader, ReaderLost, type Arrival } from './ordered-consumer.ts';

const BATCH_MAX = 500;
const BACKOFF_MS = 50;
const BACKOFF_MAX_MS = 1_000;

/**
 * Subscribes with one reader after the other: when one is lost, the next begins after the last
 * event that was yielded, so no event is missed or doubled. The pause between two attempts is 50
 * ms, doubled each time, at most a second; after a reconnect at most 50 ms. An error that is not an
 * outage is thrown: it ends a command, while a process's shared reader (`shared-subscription.ts`)
 * tries again.
 * @param stream EVENTS, or its archive
 */
export async function* follow(
  connection: JetStreamConnection,
  options: SubscribeOptions,
  stream: string = EVENTS_STREAM,
): AsyncGenerator<RecordedEvent[], void, void> {
  const { subjects, signal, batchMax = BATCH_MAX } = options;
  let after = options.after;
  const backOff = createBackOff(BACKOFF_MS, BACKOFF_MAX_MS);
  while (!signal.aborted) {
    try {
      after = after === 'end' ? await endOf(connection) : after;
      const onHeartbeat = () => options.onReceiving?.(true);
      const place = { stream, after, subjects, signal, batchMax, onHeartbeat };
      await using reader = await openReader(connection, place);
      for (;;) {
        const arrivals = await reader.take(batchMax);
        if (arrivals.length === 0) return;
        backOff.reset();
        options.onReceiving?.(true);
        const batch = readAll(arrivals, options);
        after = arrivals.at(-1)?.sequence ?? after;
        if (batch.length > 0) yield batch;
      }
    } catch (error) {
      options.onReceiving?.(false);
      if (!(error instanceof ReaderLost) && !isOutage(error)) throw error;
    }
    await backOff.pause(signal);
    while (!connection.isConnected() && !signal.aborted) await sleep(BACKOFF_MS, signal);
  }
}

async function endOf(connection: JetStreamConnection): Promise<number> {
  const { state } = await connection.whileConnected(connection.jsm.streams.info(EVENTS_STREAM));
  return state.last_seq;
}

function readAll(
  arrivals: readonly Arrival[],
  { onUnreadable, canSkip }: SubscribeOptions,
): RecordedEvent[] {
  if (canSkip === undefined)
    return arrivals.map((one) => read(one, onUnreadable)).filter((event) => event !== null);
  const events: RecordedEvent[] = [];
  const readable = new Map<string, number>();
  for (const arrival of arrivals.toReversed()) {
    const { subject } = arrival.message;
    const aggregate = subject.slice(0, subject.lastIndexOf('.'));
    const by = readable.get(aggregate);
    if (by !== undefined && canSkip(arrival.sequence, by)) continue;
    const event = read(arrival, onUnreadable);
    if (event === null) continue;
    if (event.state !== null) readable.set(aggregate, event.sequence);
    events.push(event);
  }
  return events.toReversed();
}

function read(
  { message, sequence }: Arrival,
  onUnreadable: SubscribeOptions['onUnreadable'],
): RecordedEvent | null {
  const { subject } = message;
  try {
    return readEvent(message, sequence);
  } catch (error) {
    if (!(error instanceof MalformedEvent)) throw error;
    onUnreadable({ sequence, subject, reason: error.message });
    return null;
  }
}
