import { randomUUID } from 'node:crypto';
import { decode, type Message } from '#events/codec.ts';
import type { RecordedEvent, RecordedOf } from '#events/events.ts';
import { streamFilter, matchesAnyFilter } from '#events/subjects.ts';
import { commandsOf, batchMessages } from './batch.ts';
import type { AppendResult, StreamAppend, EventStore, SubscribeOptions } from './event-store.ts';
import { createNotifier, type Notifier } from '#src/kernel/async/notifier.ts';

const BATCH_MAX = 500;
const HEARTBEAT_MS = 1_000;
const text = new TextDecoder();

/**
 * An event store in this process. Events go through the codec both ways, so that an event which
 * does not fit its schema fails here as it would in JetStream. The events returned are frozen and
 * shared.
 */
export function createMemoryEventStore(): EventStore {
  const store = createStore();
  const id = randomUUID();
  const notifier = createNotifier();

  return {
    async append(changes) {
      const appended = appendTo(store, changes);
      notifier.notify();
      return appended;
    },
    async readLast(aggregate) {
      const last = store.historyOf(streamFilter(aggregate)).at(-1) ?? null;
      return last as RecordedOf<typeof aggregate.kind> | null;
    },
    async readLastUpTo(aggregate, sequence) {
      const history = store.historyOf(streamFilter(aggregate));
      const last = history.findLast((event) => event.sequence <= sequence) ?? null;
      return last as RecordedOf<typeof aggregate.kind> | null;
    },
    async *history(aggregate, { types } = {}) {
      for (const event of store.historyOf(streamFilter(aggregate)).slice())
        if (types?.has(event.type) !== false) yield event as RecordedOf<typeof aggregate.kind>;
    },
    async *read({ subjects, after = 0, upTo = Infinity, batchMax = BATCH_MAX, signal }) {
      const wanted = store.log
        .slice(after, Math.min(upTo, store.log.length))
        .flatMap(({ subject, event }) => (matchesAnyFilter(subjects, subject) ? [event] : []));
      for (let from = 0; from < wanted.length; from += batchMax) {
        if (signal?.aborted === true) return;
        yield wanted.slice(from, from + batchMax);
      }
    },
    subscribe: (followOptions) => follow(store, notifier, followOptions),
    async lastSequence() {
      return store.log.length;
    },
    async sequenceBefore(time) {
      // Events are stored at the time of their decision: this adapter has no other clock.
      return store.log.findLast(({ event }) => event.time < time)?.event.sequence ?? 0;
    },
    async info() {
      return { id, firstSequence: 1, lastSequence: store.log.length };
    },
  };
}

/** All events in their order, the events by aggregate, and all event ids. */
type Store = {
  log: { subject: string; event: RecordedEvent }[];
  ids: Set<string>;
  historyOf(filter: string): readonly RecordedEvent[];
  add(message: Message, id: string): number;
};

function createStore(): Store {
  const log: Store['log'] = [];
  const ids = new Set<string>();
  const histories = new Map<string, RecordedEvent[]>();
  return {
    log,
    ids,
    historyOf: (filter) => histories.get(filter) ?? [],
    add({ subject, headers, body }, id) {
      const sequence = log.length + 1;
      const header = (name: string) => headers[name] ?? '';
      const event = deepFreeze(decode(subject, header, text.decode(body), sequence));
      log.push({ subject, event });
      ids.add(id);
      const filter = streamFilter(event.aggregate);
      const history = histories.get(filter);
      if (history === undefined) histories.set(filter, [event]);
      else history.push(event);
      return sequence;
    },
  };
}

function appendTo(store: Store, changes: readonly StreamAppend[]): AppendResult {
  const members = batchMessages(changes);
  const { first, commandId } = commandsOf(changes);
  const isStale = members.some(({ id, expected }) => {
    if (store.ids.has(id)) return true;
    if (expected === null) return false;
    return (store.historyOf(expected.filter).at(-1)?.sequence ?? 0) !== expected.sequence;
  });
  if (!isStale) {
    const sequences = members.map(({ id, message }) => store.add(message, id));
    return { outcome: 'appended', sequences };
  }
  const last = store.historyOf(streamFilter(first.aggregate)).at(-1);
  return { outcome: last?.metadata.commandId === commandId ? 'duplicate' : 'conflict' };
}

async function* follow(
  { log }: Store,
  notifier: Notifier,
  { subjects, after, signal, batchMax = BATCH_MAX, onReceiving, onPosition }: SubscribeOptions,
): AsyncGenerator<RecordedEvent[], void, void> {
  onReceiving?.(true);
  const heartbeat = setInterval(() => onReceiving?.(true), HEARTBEAT_MS);
  using _ = { [Symbol.dispose]: () => clearInterval(heartbeat) };
  let position = after === 'end' ? log.length : after;
  while (!signal.aborted) {
    const batch: RecordedEvent[] = [];
    for (; position < log.length && batch.length < batchMax; position++) {
      const stored = log[position];
      if (stored !== undefined && matchesAnyFilter(subjects, stored.subject))
        batch.push(stored.event);
    }
    if (batch.length > 0) yield batch;
    onPosition?.(position);
    if (position === log.length) await notifier.wait(signal);
  }
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
