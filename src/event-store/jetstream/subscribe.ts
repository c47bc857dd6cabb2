import { setTimeout as delay } from 'node:timers/promises';
import { MalformedEvent, STATE_UNKNOWN } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { EVENTS_STREAM } from '#events/subjects.ts';
import type { JetStreamConnection } from './connect.ts';
import type { FollowOptions } from '../event-store.ts';
import { isOutage } from './request.ts';
import { readEvent } from './message.ts';
import { openReader, ReaderLost, type Arrival } from './ordered-consumer.ts';

const BATCH_MAX = 500;
const BACKOFF_MS = 50;
const BACKOFF_MAX_MS = 1_000;

/**
 * Follows the log by one reader after the other: where one is lost, the next begins behind the last
 * event that was yielded, so nothing is missed or doubled. Between two tries it waits 50 ms, each
 * time twice as long, at most a second; after a reconnect at most 50 ms. Any other answer than an
 * outage is thrown: a command ends with it, a process's reader (one-reader.ts) tries on.
 * @param stream EVENTS, or the archive of it
 */
export async function* follow(
  connection: JetStreamConnection,
  options: FollowOptions,
  stream: string = EVENTS_STREAM,
): AsyncGenerator<RecordedEvent[], void, void> {
  const { subjects, signal, batchMax = BATCH_MAX } = options;
  let after = options.after;
  let backoffMs = 0;
  while (!signal.aborted) {
    try {
      after = after === 'end' ? await endOf(connection) : after;
      const onHeartbeat = () => options.onHearing?.(true);
      const place = { stream, after, subjects, signal, batchMax, onHeartbeat };
      await using reader = await openReader(connection, place);
      for (;;) {
        const arrivals = await reader.take(batchMax);
        if (arrivals.length === 0) return;
        backoffMs = 0;
        options.onHearing?.(true);
        const batch = readAll(arrivals, options);
        after = arrivals.at(-1)?.sequence ?? after;
        if (batch.length > 0) yield batch;
      }
    } catch (error) {
      options.onHearing?.(false);
      if (!(error instanceof ReaderLost) && !isOutage(error)) throw error;
    }
    backoffMs = Math.min(BACKOFF_MAX_MS, Math.max(BACKOFF_MS, 2 * backoffMs));
    await pause(backoffMs, signal);
    while (!connection.isConnected() && !signal.aborted) await pause(BACKOFF_MS, signal);
  }
}

async function endOf(connection: JetStreamConnection): Promise<number> {
  const { state } = await connection.whileConnected(connection.jsm.streams.info(EVENTS_STREAM));
  return state.last_seq;
}

function readAll(
  arrivals: readonly Arrival[],
  { onMalformed, mayLeaveOut }: FollowOptions,
): RecordedEvent[] {
  if (mayLeaveOut === undefined)
    return arrivals.map((one) => read(one, onMalformed)).filter((event) => event !== null);
  const events: RecordedEvent[] = [];
  const readable = new Map<string, number>();
  for (const arrival of arrivals.toReversed()) {
    const { subject } = arrival.message;
    const aggregate = subject.slice(0, subject.lastIndexOf('.'));
    const by = readable.get(aggregate);
    if (by !== undefined && mayLeaveOut(arrival.sequence, by)) continue;
    const event = read(arrival, onMalformed);
    if (event === null) continue;
    if ((event.state as unknown) !== STATE_UNKNOWN) readable.set(aggregate, event.sequence);
    events.push(event);
  }
  return events.toReversed();
}

function read(
  { message, sequence }: Arrival,
  onMalformed: FollowOptions['onMalformed'],
): RecordedEvent | null {
  const { subject } = message;
  try {
    return readEvent(message, sequence);
  } catch (error) {
    if (!(error instanceof MalformedEvent)) throw error;
    onMalformed({ sequence, subject, reason: error.message });
    return null;
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  // Rejects only when the signal aborts, which the caller sees for itself.
  await delay(ms, undefined, { signal }).catch(() => {});
}
