import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { createJetStreamWorkQueues } from '#src/kernel/messaging/jetstream/jetstream-work-queue.ts';
import { createMemoryWorkQueues } from '#src/kernel/messaging/work-queue.memory.ts';
import type { OpenWorkQueue } from '#src/kernel/messaging/work-queue.ts';
import type {
  EventStore,
  StreamAppend,
  SubscribeOptions,
} from '#src/kernel/event-store/event-store.ts';
import { withSharedSubscription } from '#src/kernel/event-store/shared-subscription.ts';
import type { RecordedEvent, RecordedOf, RefOf } from '#events/events.ts';
import { accessed, change, requested } from '#test/support/events.fixture.ts';
import { elsewhere, natsServers, type Server } from '#test/support/servers/containers.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';

/** An event store for one test file, and the same store as another process would open it. */
export type OpenedLog = AsyncDisposable & {
  eventStore: EventStore;
  openWorkQueue: OpenWorkQueue;
  other: EventStore;
  otherOpenWorkQueue: OpenWorkQueue;
};

/** Short, so that a test can wait for the loss of a consumer. */
export const LEASE_MS = 500;

export type LogAdapter = { adapter: string; open: (leaseMs?: number) => Promise<OpenedLog> };

export const memoryLogs = elsewhere<LogAdapter>([{ adapter: 'memory', open: openMemoryLog }]);

export const realLogs: readonly LogAdapter[] = natsServers.map(({ where, start }) => ({
  adapter: `JetStream in a ${where}`,
  open: async (leaseMs?: number) => openLogOn(await start(), leaseMs),
}));

/** Every adapter of the event store. */
export const eventLogs: readonly LogAdapter[] = [
  ...memoryLogs,
  ...realLogs,
  ...elsewhere([{ adapter: 'JetStream, followed through one reader', open: openOneReaderLog }]),
];

async function openMemoryLog(leaseMs = LEASE_MS): Promise<OpenedLog> {
  const eventStore = createMemoryEventStore();
  const openWorkQueue = createMemoryWorkQueues(eventStore, { leaseMs });
  return {
    eventStore,
    openWorkQueue,
    other: eventStore,
    otherOpenWorkQueue: openWorkQueue,
    async [Symbol.asyncDispose]() {},
  };
}

export type RealLog = OpenedLog & { nats: RealNats; connection: JetStreamConnection };

/** The event store on a nats-server of its own. */
export async function openRealLog(leaseMs = LEASE_MS): Promise<RealLog> {
  const nats = await startNats();
  return { ...(await openLogOn(nats, leaseMs)), nats };
}

/** The event store on that server; both are disposed of together. */
export async function openLogOn(
  server: Server,
  leaseMs = LEASE_MS,
): Promise<OpenedLog & { connection: JetStreamConnection }> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(server);
  const connection = stack.use(await connectJetStream({ url: nats.url }));
  const second = stack.use(await connectJetStream({ url: nats.url }));
  const parts = stack.move();
  return {
    connection,
    eventStore: createJetStreamEventStore(connection),
    openWorkQueue: createJetStreamWorkQueues(connection, { leaseMs }),
    other: createJetStreamEventStore(second),
    otherOpenWorkQueue: createJetStreamWorkQueues(second, { leaseMs }),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** With the options of a service's process. */
async function openOneReaderLog(leaseMs = LEASE_MS): Promise<OpenedLog> {
  await using stack = new AsyncDisposableStack();
  const real = stack.use(await openRealLog(leaseMs));
  const eventStore = stack.use(await withSharedSubscription(real.eventStore));
  const other = stack.use(await withSharedSubscription(real.other));
  const parts = stack.move();
  const { openWorkQueue, otherOpenWorkQueue } = real;
  return {
    eventStore,
    openWorkQueue,
    other,
    otherOpenWorkQueue,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

type Follow = Pick<SubscribeOptions, 'subjects' | 'after'> & { batchMax?: number };

/** The first `count` events of a subscription, batch by batch; fails after `withinMs`. */
export async function followed(
  eventStore: EventStore,
  options: Follow,
  count: number,
  withinMs = 60_000,
): Promise<RecordedEvent[][]> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), withinMs);
  const batches: RecordedEvent[][] = [];
  const following = eventStore.subscribe({ ...options, signal: stop.signal, onUnreadable: fail });
  for await (const batch of following) {
    batches.push(batch);
    if (batches.flat().length >= count) break;
  }
  clearTimeout(timer);
  const received = batches.flat().length;
  if (received < count)
    throw new Error(`received ${received} of ${count} events within ${withinMs} ms`);
  return batches;
}

function fail({ reason }: { reason: string }): never {
  throw new Error(reason);
}

/** Appends that many events of a session, each by a separate call; returns their sequences. */
export async function appendEach(
  eventStore: EventStore,
  session: RefOf<'session'>,
  count: number,
): Promise<number[]> {
  const sequences: number[] = [];
  for (let minute = 0; minute < count; minute++) {
    const event = minute === 0 ? requested(session) : accessed(session, minute);
    sequences.push(await appendOne(eventStore, change(sequences.at(-1) ?? 0, event)));
  }
  return sequences;
}

/** Appends one event; returns its sequence. */
export async function appendOne(eventStore: EventStore, one: StreamAppend): Promise<number> {
  const appended = await eventStore.append([one]);
  if (appended.outcome === 'conflict') throw new Error(appended.outcome);
  if (appended.outcome === 'appended') return appended.sequences[0] ?? 0;
  // The answer was late, as on a paused machine: asked again, the event store had the event.
  return (await eventStore.readLast(one.aggregate))?.sequence ?? 0;
}

export async function historyOf(eventStore: EventStore, session: RefOf<'session'>) {
  const events: RecordedOf<'session'>[] = [];
  for await (const event of eventStore.history(session)) events.push(event);
  return events;
}
