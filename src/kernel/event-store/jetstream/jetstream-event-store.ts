import type { StoredMsg } from '@nats-io/jetstream';
import { decode } from '#events/codec.ts';
import type { RecordedOf } from '#events/events.ts';
import { EVENTS_STREAM, streamFilter } from '#events/subjects.ts';
import type { JetStreamConnection } from './connection.ts';
import { combineCalls } from '#src/kernel/async/combine-calls.ts';
import type { EventStore, EventStoreInfo } from '../event-store.ts';
import { readable } from '../unreadable.ts';
import { BATCH, createAppend } from './append.ts';
import { readHistory } from './history.ts';
import { readRange } from './read.ts';
import { requestWithRetry } from './request.ts';
import { follow } from './subscribe.ts';
import { lastUpTo } from './point-in-time.ts';
import { sequenceBefore } from './jetstream-time.ts';

const READ_MS = 2_000;
/** Of one moment; more than a process has polls. */
const INFOS_MAX = 100;
/** Polls wait for one tick (`ticks.ts`); their timers fire some milliseconds apart. */
const GATHER_MS = 5;

/**
 * The event store on the EVENTS stream. Bounds: reads 2 s (one more for a late answer), append 5 s.
 */
export function createJetStreamEventStore(connection: JetStreamConnection): EventStore {
  const { jsm } = connection;

  async function newest(filter: string, fromLeader: boolean): Promise<StoredMsg | null> {
    const query = { last_by_subj: filter };
    return requestWithRetry(connection, READ_MS, () =>
      fromLeader
        ? jsm.streams.getMessage(EVENTS_STREAM, query)
        : jsm.direct.getMessage(EVENTS_STREAM, query),
    );
  }

  async function lastSequence(): Promise<number> {
    // The one wildcard for which the server walks no subjects.
    const last = await newest('>', true);
    if (last !== null) return last.seq - storedOfOpenBatch(last);
    // There is none, or the newest was removed.
    const { state } = await requestWithRetry(connection, READ_MS, () =>
      jsm.streams.info(EVENTS_STREAM),
    );
    return state.last_seq;
  }

  /** The polls of a process that ask at one moment share an answer. */
  const info = combineCalls<null, EventStoreInfo>(
    async (_, asked) => {
      const { created: id, state } = await requestWithRetry(connection, READ_MS, () =>
        jsm.streams.info(EVENTS_STREAM),
      );
      // An empty stream has 0.
      const firstSequence = Math.max(1, state.first_seq);
      return asked.map(() => ({ id, firstSequence, lastSequence: state.last_seq }));
    },
    INFOS_MAX,
    (ask) => setTimeout(ask, GATHER_MS),
  );

  return {
    append: createAppend(connection),

    async readLast(aggregate, { fromLeader = false } = {}) {
      const stored = await newest(streamFilter(aggregate), fromLeader);
      if (stored === null) return null;
      const { subject, header, seq } = stored;
      const body = stored.string();
      const event = readable(() => decode(subject, (name) => header.get(name), body, seq));
      return event as RecordedOf<typeof aggregate.kind>;
    },

    readLastUpTo: (aggregate, sequence) => lastUpTo(connection, aggregate, sequence),

    async *history(aggregate, options) {
      for await (const batch of readHistory(connection, aggregate, options?.types ?? null))
        for (const event of batch) yield event as RecordedOf<typeof aggregate.kind>;
    },

    async *read({ after = 0, upTo = Infinity, ...options }) {
      const end = upTo <= after ? 0 : Math.min(upTo, await lastSequence());
      yield* readRange(connection, options, { sequence: after }, end);
    },

    subscribe: (options) => follow(connection, options),

    lastSequence,

    sequenceBefore: (time) => sequenceBefore(connection, time),

    info: () => info('', null),
  };
}

/**
 * How many messages of a batch are stored, up to the given one; 0 where that ends its batch. The
 * server stores a batch whole, but message by message: readers see it grow until it is
 * acknowledged.
 */
function storedOfOpenBatch({ header }: StoredMsg): number {
  if (header.get(BATCH.commit) !== '') return 0;
  return Number(header.get(BATCH.sequence));
}
