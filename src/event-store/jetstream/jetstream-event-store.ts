import type { StoredMsg } from '@nats-io/jetstream';
import { decode, MalformedEvent } from '#events/codec.ts';
import type { RecordedEvent, RecordedOf } from '#events/events.ts';
import { EVENTS_STREAM, streamFilter } from '#events/subjects.ts';
import { Unavailable } from '#src/errors.ts';
import type { JetStreamConnection } from './connection.ts';
import type { EventStore } from '../event-store.ts';
import { createAppend } from './append.ts';
import { requestWithRetry } from './request.ts';
import { follow } from './subscribe.ts';
import { lastUpTo } from './point-in-time.ts';
import { sequenceBefore } from './jetstream-time.ts';

const READ_MS = 2_000;
/** `history` gives up if the next events do not arrive within this. */
const HISTORY_MS = 5_000;

/**
 * The event store on the EVENTS stream. Bounds: reads 2 s (one more for a late answer), append 5 s.
 */
export function createJetStreamEventStore(connection: JetStreamConnection): EventStore {
  const { jsm } = connection;

  async function newest(filter: string, fromLeader: boolean): Promise<StoredMsg | null> {
    const query = { last_by_subj: filter };
    return requestWithRetry(connection, READ_MS, () =>
      fromLeader || connection.hasArchive
        ? jsm.streams.getMessage(EVENTS_STREAM, query)
        : jsm.direct.getMessage(EVENTS_STREAM, query),
    );
  }

  return {
    append: createAppend(connection),

    async readLast(aggregate, { fromLeader = false } = {}) {
      const stored = await newest(streamFilter(aggregate), fromLeader);
      if (stored === null) return null;
      const { subject, header, seq } = stored;
      const event = decode(subject, (name) => header.get(name), stored.string(), seq);
      return event as RecordedOf<typeof aggregate.kind>;
    },

    readLastUpTo: (aggregate, sequence) => lastUpTo(connection, aggregate, sequence),

    async *history(aggregate) {
      const filter = streamFilter(aggregate);
      const end = (await newest(filter, true))?.seq ?? 0;
      for await (const event of upTo(connection, end, filter))
        yield event as RecordedOf<typeof aggregate.kind>;
    },

    subscribe: (followOptions) => follow(connection, followOptions),

    async lastSequence(subjects) {
      if (subjects === undefined) {
        const { state } = await requestWithRetry(connection, READ_MS, () =>
          jsm.streams.info(EVENTS_STREAM),
        );
        return state.last_seq;
      }
      const found = await Promise.all(subjects.map((subject) => newest(subject, true)));
      return Math.max(0, ...found.map((stored) => stored?.seq ?? 0));
    },

    sequenceBefore: (time) => sequenceBefore(connection, time),

    async info() {
      const info = await requestWithRetry(connection, READ_MS, () =>
        jsm.streams.info(EVENTS_STREAM),
      );
      return { id: info.created, lastSequence: info.state.last_seq };
    },
  };
}

/**
 * The events of a filter, up to the last one at `end`.
 * @throws Unavailable if the next ones do not arrive; MalformedEvent if one cannot be decoded,
 * since a history must be complete
 */
async function* upTo(
  connection: JetStreamConnection,
  end: number,
  filter: string,
): AsyncGenerator<RecordedEvent, void, void> {
  if (end === 0) return;
  const stop = new AbortController();
  const { signal } = stop;
  // Runs only while this waits for the server, not while the caller works.
  const startTimer = () => setTimeout(() => stop.abort(), HISTORY_MS);
  let timer = startTimer();
  try {
    const options = { subjects: [filter], after: 0, signal, onUnreadable: refuse };
    const batches = follow(connection, options);
    for await (const batch of batches) {
      clearTimeout(timer);
      for (const event of batch) {
        if (event.sequence > end) return;
        yield event;
        if (event.sequence === end) return;
      }
      timer = startTimer();
    }
    throw new Unavailable('event-log');
  } finally {
    clearTimeout(timer);
  }
}

function refuse({ reason }: { reason: string }): never {
  throw new MalformedEvent(reason);
}
