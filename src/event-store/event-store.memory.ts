import { randomUUID } from 'node:crypto';
import { decode, type Message } from '#events/codec.ts';
import type { RecordedEvent, RecordedOf } from '#events/events.ts';
import { filterOf, isAmong } from '#events/subjects.ts';
import { commandsOf, membersOf } from './batch.ts';
import type { Appended, Change, EventLog, FollowOptions } from './event-store.ts';
import { createBell, type Bell } from '#src/async/notifier.ts';
import {
  createMemoryQueue,
  type Clock,
  type MemoryQueue,
  type Parked,
} from '../messaging/work-queue.memory.ts';

export type MemoryEventLog = EventLog & {
  /** What the consumers of an inbox have parked. */
  parked(name: string): readonly Parked<RecordedEvent>[];
};

export type MemoryEventLogOptions = {
  /** By which inboxes' leases and retries run; default: the machine's. */
  clock?: Clock;
  leaseMs?: number;
};

const BATCH_MAX = 500;
const text = new TextDecoder();

type NamedQueue = { subjects: readonly string[]; queue: MemoryQueue<RecordedEvent> };

/**
 * The event log in this process. Events go through the codec both ways, so what does not fit its
 * schema fails here as it would in the real log; those handed out are frozen and shared.
 */
export function createMemoryEventLog(options: MemoryEventLogOptions = {}): MemoryEventLog {
  const { clock = { now: () => Date.now() }, leaseMs } = options;
  const store = createStore();
  const id = randomUUID();
  const queues = new Map<string, NamedQueue>();
  const bell = createBell();

  return {
    async append(changes) {
      const before = store.log.length;
      const appended = appendTo(store, changes);
      for (const { subject, event } of store.log.slice(before))
        for (const { subjects, queue } of queues.values())
          if (isAmong(subjects, subject)) queue.push(event);
      bell.ring();
      return appended;
    },
    async last(aggregate) {
      const last = store.historyOf(filterOf(aggregate)).at(-1) ?? null;
      return last as RecordedOf<typeof aggregate.kind> | null;
    },
    async lastUpTo(aggregate, sequence) {
      const history = store.historyOf(filterOf(aggregate));
      const last = history.findLast((event) => event.sequence <= sequence) ?? null;
      return last as RecordedOf<typeof aggregate.kind> | null;
    },
    async *history(aggregate) {
      for (const event of store.historyOf(filterOf(aggregate)).slice())
        yield event as RecordedOf<typeof aggregate.kind>;
    },
    follow: (followOptions) => follow(store, bell, followOptions),
    async lastSequence(subjects) {
      const found = store.log.findLast(
        ({ subject }) => subjects === undefined || isAmong(subjects, subject),
      );
      return found?.event.sequence ?? 0;
    },
    async sequenceBefore(time) {
      // Stored the moment it was decided: there is no other clock here.
      return store.log.findLast(({ event }) => event.time < time)?.event.sequence ?? 0;
    },
    async facts() {
      return { id, lastSequence: store.log.length };
    },
    async inbox(name, subjects) {
      const known = queues.get(name);
      const queue = known?.queue ?? createMemoryQueue<RecordedEvent>(clock, leaseMs);
      if (known === undefined)
        for (const { subject, event } of store.log)
          if (isAmong(subjects, subject)) queue.push(event);
      queues.set(name, { subjects, queue });
      return queue.inbox;
    },
    parked: (name) => queues.get(name)?.queue.parked ?? [],
  };
}

/** The events in their order; by aggregate; and the ids of all. */
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
      const filter = filterOf(event.aggregate);
      const history = histories.get(filter);
      if (history === undefined) histories.set(filter, [event]);
      else history.push(event);
      return sequence;
    },
  };
}

function appendTo(store: Store, changes: readonly Change[]): Appended {
  const members = membersOf(changes);
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
  const last = store.historyOf(filterOf(first.aggregate)).at(-1);
  return { outcome: last?.cause.commandId === commandId ? 'repeated' : 'conflict' };
}

async function* follow(
  { log }: Store,
  bell: Bell,
  { subjects, after, signal, batchMax = BATCH_MAX, onHearing }: FollowOptions,
): AsyncGenerator<RecordedEvent[], void, void> {
  onHearing?.(true);
  let position = after === 'end' ? log.length : after;
  while (!signal.aborted) {
    const batch: RecordedEvent[] = [];
    for (; position < log.length && batch.length < batchMax; position++) {
      const stored = log[position];
      if (stored !== undefined && isAmong(subjects, stored.subject)) batch.push(stored.event);
    }
    if (batch.length > 0) yield batch;
    else await bell.heard(signal);
  }
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
