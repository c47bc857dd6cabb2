import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { EventMetadata } from '#events/envelope.ts';
import { filters, streamFilter } from '#events/subjects.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { AppendResult, EventStore } from '#src/kernel/event-store/event-store.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamRawRecords } from '#src/kernel/event-store/jetstream/jetstream-raw-records.ts';
import { withSharedSubscription } from '#src/kernel/event-store/shared-subscription.ts';
import {
  accessed,
  aCause,
  aSession,
  change,
  ledgerOf,
  requested,
  slotReserved,
} from '#test/support/events.fixture.ts';
import { startFlakyTcpProxy } from '#test/support/servers/flaky-tcp-proxy.ts';
import { settledWithin } from '#test/support/settled-within.ts';
import {
  appendEach,
  historyOf,
  openRealLog,
  type RealLog,
} from '#test/support/stores/event-stores.ts';

const never = new AbortController().signal;

describe('the event store on JetStream, whose server is killed', () => {
  let opened: RealLog;
  beforeEach(async () => {
    opened = await openRealLog();
  });
  afterEach(() => opened[Symbol.asyncDispose]());

  test('loses and doubles no event when the server is killed during appends', async () => {
    const { eventStore, nats } = opened;
    const writers = Array.from({ length: 4 }, () => writeOn(eventStore));
    const until = (count: number) =>
      expect
        .poll(() => writers.every(({ acknowledged }) => acknowledged.length >= count), {
          interval: 5,
        })
        .toBe(true);
    await using together = await withSharedSubscription(opened.eventStore);
    const all = [followUntilStopped(eventStore), followUntilStopped(together)];
    for (const count of [30, 60, 90]) {
      await until(count);
      await nats.kill();
      await nats.restart();
    }
    await until(120);
    for (const writer of writers) await writer.stop();

    const end = await eventStore.lastSequence();
    const every = Array.from({ length: end }, (_, index) => index + 1);
    for (const following of all) {
      await expect.poll(() => following.received.length).toBe(end);
      await following.stop();
      expect(following.received).toEqual(every);
    }
    for (const { session, acknowledged } of writers) {
      const commands = (await historyOf(eventStore, session)).map(
        (event) => event.metadata.commandId,
      );
      for await (const { metadata } of eventStore.history(ledgerOf(session)))
        expect(commands).toContain(metadata.commandId);
      expect(new Set(commands).size).toBe(commands.length);
      expect(commands).toEqual(expect.arrayContaining(acknowledged));
      expect(acknowledged.length).toBeGreaterThanOrEqual(120);
    }
  });

  test('fails as unavailable within its bounds, and works again when the server is back', async () => {
    const { eventStore, openWorkQueue, nats } = opened;
    const session = aSession();
    const [sequence = 0] = await appendEach(eventStore, session, 1);
    const inbox = await openWorkQueue('worker', [streamFilter(session)]);
    await (await inbox.next(1_000, never))?.ack();
    await nats.kill();
    const asked = [
      eventStore.append([change(sequence, accessed(session))]),
      eventStore.readLast(session),
      eventStore.lastSequence(),
      openWorkQueue('another', filters.sessions),
      inbox.next(500, never),
      historyOf(eventStore, session),
    ];
    const answers = await settledWithin(6_000, Promise.allSettled(asked));
    for (const answer of answers)
      expect(answer.status === 'rejected' && answer.reason).toBeInstanceOf(Unavailable);

    await nats.restart();
    const waiting = inbox.next(20_000, never);
    const again = eventStore.append([change(sequence, accessed(session))]);
    expect((await again).outcome).toBe('appended');
    // The kill may have cost the acknowledgement of the first item: then it is delivered again.
    const types = [(await waiting)?.item.type];
    if (types[0] === 'session.requested') types.push((await inbox.next(5_000, never))?.item.type);
    expect(types.at(-1)).toBe('session.accessed');
    expect(await historyOf(eventStore, session)).toHaveLength(2);
  });

  test('is given up within its bound at a connect', async () => {
    await opened.nats.kill();
    const connecting = connectJetStream({ url: opened.nats.url, readyMs: 300 });
    await expect(settledWithin(5_000, connecting)).rejects.toThrow('no connection to NATS');
  });
});

describe('the raw records, whose connection breaks', () => {
  test('are whole and in order though it breaks twice while they are read', async () => {
    await using opened = await openRealLog();
    const session = aSession();
    await appendEach(opened.eventStore, session, 3_000);
    const history = await historyOf(opened.eventStore, session);
    await using proxy = await startFlakyTcpProxy(opened.nats.port);
    const url = `nats://127.0.0.1:${proxy.port}`;
    await using connection = await connectJetStream({ url });
    proxy.breakOn(history[700]?.id ?? '', history[2_300]?.id ?? '');
    const found: number[] = [];
    const range = { after: 0, upTo: 3_000 };
    for await (const batch of createJetStreamRawRecords(connection).readAll(range))
      found.push(...batch.map(({ sequence }) => sequence));
    expect(proxy.breaks()).toBe(2);
    expect(found).toEqual(Array.from({ length: 3_000 }, (_, at) => at + 1));
  });

  test('are an outage, not fewer, if the server is gone before they are all read', async () => {
    await using opened = await openRealLog();
    const session = aSession();
    await appendEach(opened.eventStore, session, 3_000);
    const history = await historyOf(opened.eventStore, session);
    await using proxy = await startFlakyTcpProxy(opened.nats.port);
    const url = `nats://127.0.0.1:${proxy.port}`;
    await using connection = await connectJetStream({ url });
    proxy.endOn(history[2_300]?.id ?? '');
    const reading = createJetStreamRawRecords(connection).readAll({ after: 0, upTo: 3_000 });
    await expect(Array.fromAsync(reading)).rejects.toThrow(Unavailable);
    expect(proxy.breaks()).toBe(1);
  });
});

/**
 * Appends to a session and its ledger, one command after the other, as a command handler does,
 * until stopped.
 */
function writeOn(eventStore: EventStore) {
  const session = aSession();
  const acknowledged: string[] = [];
  const stopping = new AbortController();

  async function attempt(metadata: EventMetadata): Promise<AppendResult['outcome']> {
    const last = await eventStore.readLast(session, { fromLeader: true });
    const ledger = await eventStore.readLast(ledgerOf(session), { fromLeader: true });
    const event = last === null ? requested(session, metadata) : accessed(session, 1, metadata);
    const changes = [change(last?.sequence ?? 0, event)];
    // Every other command is a batch.
    if (acknowledged.length % 2 === 1)
      changes.push(change(ledger?.sequence ?? 0, slotReserved(session, metadata)));
    return (await eventStore.append(changes)).outcome;
  }

  async function run() {
    while (!stopping.signal.aborted) {
      const metadata = aCause();
      let outcome: AppendResult['outcome'] = 'conflict';
      while (outcome === 'conflict') {
        try {
          outcome = await attempt(metadata);
        } catch (error) {
          // Not acknowledged: it may be stored or not, and the test does not count on it.
          if (error instanceof Unavailable) break;
          throw error;
        }
      }
      if (outcome !== 'conflict') acknowledged.push(metadata.commandId);
    }
  }
  const running = run();
  return {
    session,
    acknowledged,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** The sequences of all events that a subscription to the whole store receives. */
function followUntilStopped(eventStore: EventStore) {
  const stop = new AbortController();
  const received: number[] = [];
  async function run() {
    const options = { subjects: filters.all, after: 0, signal: stop.signal, onUnreadable() {} };
    for await (const batch of eventStore.subscribe(options))
      received.push(...batch.map((event) => event.sequence));
  }
  const running = run();
  return {
    received,
    async stop() {
      stop.abort();
      await running;
    },
  };
}
