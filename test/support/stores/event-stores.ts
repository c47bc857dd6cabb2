import { connectJetStream, type JetStreamConnection } from '#src/event-store/jetstream/connect.ts';
import { createJetStreamEventLog } from '#src/event-store/jetstream/jetstream-event-store.ts';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import type { EventLog, FollowOptions } from '#src/event-store/event-store.ts';
import { throughOneReader } from '#src/event-store/shared-subscription.ts';
import type { RecordedEvent, RecordedOf, RefOf } from '#events/events.ts';
import { accessed, change, requested } from '#test/support/events.fixture.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';

/** A log for one test file, and the same log as another process would open it. */
export type OpenedLog = AsyncDisposable & { log: EventLog; other: EventLog };

/** Short, so that the loss of a consumer can be waited for. */
export const LEASE_MS = 500;

/** Every adapter of the port. */
export const eventLogs: { adapter: string; open: (leaseMs?: number) => Promise<OpenedLog> }[] = [
  {
    adapter: 'memory',
    async open(leaseMs = LEASE_MS) {
      const log = createMemoryEventLog({ leaseMs });
      return { log, other: log, async [Symbol.asyncDispose]() {} };
    },
  },
  { adapter: 'JetStream', open: openRealLog },
  { adapter: 'JetStream, followed through one reader', open: openOneReaderLog },
];

export type RealLog = OpenedLog & { nats: RealNats; connection: JetStreamConnection };

/** The log on a nats-server of its own. */
export async function openRealLog(leaseMs = LEASE_MS): Promise<RealLog> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const connection = stack.use(await connectJetStream({ url: nats.url }));
  const second = stack.use(await connectJetStream({ url: nats.url }));
  const parts = stack.move();
  return {
    nats,
    connection,
    log: createJetStreamEventLog(connection, { leaseMs }),
    other: createJetStreamEventLog(second, { leaseMs }),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** As a service's process has it. */
async function openOneReaderLog(leaseMs = LEASE_MS): Promise<OpenedLog> {
  await using stack = new AsyncDisposableStack();
  const real = stack.use(await openRealLog(leaseMs));
  const log = stack.use(await throughOneReader(real.log));
  const other = stack.use(await throughOneReader(real.other));
  const parts = stack.move();
  return { log, other, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

type Follow = Pick<FollowOptions, 'subjects' | 'after'> & { batchMax?: number };

/** The first `count` events that a follower hears, batch by batch; fails after `withinMs`. */
export async function followed(
  log: EventLog,
  options: Follow,
  count: number,
  withinMs = 10_000,
): Promise<RecordedEvent[][]> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), withinMs);
  const batches: RecordedEvent[][] = [];
  const following = log.follow({ ...options, signal: stop.signal, onMalformed: fail });
  for await (const batch of following) {
    batches.push(batch);
    if (batches.flat().length >= count) break;
  }
  clearTimeout(timer);
  const heard = batches.flat().length;
  if (heard < count) throw new Error(`heard ${heard} of ${count} events within ${withinMs} ms`);
  return batches;
}

function fail({ reason }: { reason: string }): never {
  throw new Error(reason);
}

/** Appends that many events of a session, each by a call of its own; their sequences. */
export async function appendEach(
  log: EventLog,
  session: RefOf<'session'>,
  count: number,
): Promise<number[]> {
  const sequences: number[] = [];
  for (let minute = 0; minute < count; minute++) {
    const event = minute === 0 ? requested(session) : accessed(session, minute);
    const appended = await log.append([change(sequences.at(-1) ?? 0, event)]);
    if (appended.outcome !== 'appended') throw new Error(appended.outcome);
    sequences.push(...appended.sequences);
  }
  return sequences;
}

export async function historyOf(log: EventLog, session: RefOf<'session'>) {
  const events: RecordedOf<'session'>[] = [];
  for await (const event of log.history(session)) events.push(event);
  return events;
}
