import type { StoredMsg } from '@nats-io/jetstream';
import { decode, MalformedEvent } from '#events/codec.ts';
import type { RecordedEvent, RecordedOf } from '#events/events.ts';
import { EVENTS_STREAM, filterOf } from '#events/subjects.ts';
import { Unavailable } from '#src/errors.ts';
import type { JetStreamConnection } from './connect.ts';
import type { EventLog } from '../event-store.ts';
import { createAppend } from './append.ts';
import { ask } from './request.ts';
import { follow } from './subscribe.ts';
import { openInbox } from '../../messaging/jetstream/jetstream-work-queue.ts';
import { readEvent } from './message.ts';
import { lastUpTo } from './point-in-time.ts';
import { sequenceBefore } from './jetstream-time.ts';

const READ_MS = 2_000;
/** `history` gives up where the next events do not come within this. */
const HISTORY_MS = 5_000;

export type JetStreamEventLogOptions = {
  /** How long an inbox's item is held without a word from its consumer; default 5 s. */
  leaseMs?: number;
};

/**
 * The event log on the EVENTS stream. Bounds: reads 2 s (one more for a late answer), append 5 s.
 */
export function createJetStreamEventLog(
  connection: JetStreamConnection,
  options: JetStreamEventLogOptions = {},
): EventLog {
  const { jsm } = connection;

  async function newest(filter: string, fromLeader: boolean): Promise<StoredMsg | null> {
    const query = { last_by_subj: filter };
    return ask(connection, READ_MS, () =>
      fromLeader || connection.hasArchive
        ? jsm.streams.getMessage(EVENTS_STREAM, query)
        : jsm.direct.getMessage(EVENTS_STREAM, query),
    );
  }

  return {
    append: createAppend(connection),

    async last(aggregate, { fromLeader = false } = {}) {
      const stored = await newest(filterOf(aggregate), fromLeader);
      if (stored === null) return null;
      const { subject, header, seq } = stored;
      const event = decode(subject, (name) => header.get(name), stored.string(), seq);
      return event as RecordedOf<typeof aggregate.kind>;
    },

    lastUpTo: (aggregate, sequence) => lastUpTo(connection, aggregate, sequence),

    async *history(aggregate) {
      const filter = filterOf(aggregate);
      const end = (await newest(filter, true))?.seq ?? 0;
      for await (const event of upTo(connection, end, filter))
        yield event as RecordedOf<typeof aggregate.kind>;
    },

    follow: (followOptions) => follow(connection, followOptions),

    async lastSequence(subjects) {
      if (subjects === undefined) {
        const { state } = await ask(connection, READ_MS, () => jsm.streams.info(EVENTS_STREAM));
        return state.last_seq;
      }
      const found = await Promise.all(subjects.map((subject) => newest(subject, true)));
      return Math.max(0, ...found.map((stored) => stored?.seq ?? 0));
    },

    sequenceBefore: (time) => sequenceBefore(connection, time),

    async facts() {
      const info = await ask(connection, READ_MS, () => jsm.streams.info(EVENTS_STREAM));
      return { id: info.created, lastSequence: info.state.last_seq };
    },

    inbox: (name, subjects) =>
      openInbox<RecordedEvent>(connection, {
        stream: EVENTS_STREAM,
        name,
        subjects,
        ...options,
        read: readEvent,
      }),
  };
}

/**
 * The events of a filter, the last of which is at `end`.
 * @throws Unavailable where the next ones do not come; MalformedEvent where one cannot be read: a
 * history with a hole is none
 */
async function* upTo(
  connection: JetStreamConnection,
  end: number,
  filter: string,
): AsyncGenerator<RecordedEvent, void, void> {
  if (end === 0) return;
  const stop = new AbortController();
  const { signal } = stop;
  // Runs while we wait for the log, not while the caller works.
  const startTimer = () => setTimeout(() => stop.abort(), HISTORY_MS);
  let timer = startTimer();
  try {
    const options = { subjects: [filter], after: 0, signal, onMalformed: refuse };
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
