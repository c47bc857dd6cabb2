import type { RecordedEvent } from '#events/events.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { subjectsOf } from './subscription.ts';
import type { Channel } from './channel.ts';
import type { Client } from './subscriber.ts';
import { eventFrame } from './sse-frames.ts';

/** Events read at once for one client. */
const BATCH_MAX = 100;
/** A client that is slower than this gives its place at the log to another meanwhile. */
const PATIENCE_MS = 250;
/** One that takes nothing for so long reads no more. */
export const STALL_MS = 30_000;

export type BackfillParts = {
  log: EventLog;
  /** Places at the log; waits for one, until the signal aborts. */
  places: Places;
  onMalformed: (poison: { sequence: number; subject: string; reason: string }) => void;
};

/**
 * Sends the client what the log has behind its cursor, then hands it over to the channel: there
 * everything that came meanwhile is at hand, so nothing is missed or doubled.
 * @throws Unavailable
 */
export async function backfill(
  parts: BackfillParts,
  channel: Channel,
  client: Client,
): Promise<void> {
  const subjects = subjectsOf(client.asked);
  while (!client.signal.aborted) {
    if (channel.goLive(client)) return;
    // Whatever the follower has brought was in the log before this read.
    const since = channel.since();
    const end = await parts.log.lastSequence(subjects);
    while (client.cursor() < end && !client.signal.aborted) {
      await readOn(parts, subjects, client, end);
      if (!(await client.drained(STALL_MS))) client.end('slow_reader');
    }
    client.advance(Math.max(since, end));
  }
}

/** Reads up to `end`, or until the client is slow. */
async function readOn(
  { log, places, onMalformed }: BackfillParts,
  subjects: readonly string[],
  client: Client,
  end: number,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  stack.use(await places.take(client.signal));
  const done = new AbortController();
  const batches = log.follow({
    subjects,
    after: client.cursor(),
    signal: AbortSignal.any([client.signal, done.signal]),
    batchMax: BATCH_MAX,
    onMalformed(poison) {
      onMalformed(poison);
      // Where it is the last there is, no batch comes to say so.
      if (poison.sequence >= end) done.abort();
    },
  });
  for await (const batch of batches) {
    if (!(await sendAll(client, batch))) return;
    if (client.cursor() >= end || !(await client.drained(PATIENCE_MS))) return;
  }
  if (done.signal.aborted) client.advance(end);
}

/** False where it was not all taken, for now or for ever. */
async function sendAll(client: Client, batch: readonly RecordedEvent[]): Promise<boolean> {
  const entries = batch.map((event) => ({
    sequence: event.sequence,
    event,
    frame: eventFrame(event),
  }));
  const last = entries.at(-1)?.sequence ?? 0;
  for (;;) {
    client.send(entries);
    if (client.signal.aborted || client.cursor() >= last) return !client.signal.aborted;
    if (!(await client.drained(PATIENCE_MS))) return false;
  }
}

/** A bound on what goes on at once. */
export type Places = { take(signal: AbortSignal): Promise<Disposable> };

/** Those who wait are served in their order; one whose signal aborts goes on without a place. */
export function createPlaces(count: number): Places {
  let free = count;
  const waiting = new Set<(place: Disposable) => void>();
  const place = { [Symbol.dispose]: leave };
  const none = { [Symbol.dispose]: () => undefined };

  function leave(): void {
    const [next] = waiting;
    if (next === undefined) free += 1;
    else {
      waiting.delete(next);
      next(place);
    }
  }
  return {
    async take(signal) {
      if (signal.aborted) return none;
      if (free > 0) {
        free -= 1;
        return place;
      }
      const { promise, resolve } = Promise.withResolvers<Disposable>();
      const giveUp = () => {
        if (waiting.delete(resolve)) resolve(none);
      };
      waiting.add(resolve);
      signal.addEventListener('abort', giveUp, { once: true });
      return promise;
    },
  };
}
