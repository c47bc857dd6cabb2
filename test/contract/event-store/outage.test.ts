import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { EventMetadata } from '#events/envelope.ts';
import { ADVISORY_STREAM, streamFilter, filters, subjectOf } from '#events/subjects.ts';
import { Unavailable } from '#src/errors.ts';
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/event-store/jetstream/jetstream-event-store.ts';
import type { AppendResult, EventStore } from '#src/event-store/event-store.ts';
import { withSharedSubscription } from '#src/event-store/shared-subscription.ts';
import {
  accessed,
  aCause,
  aSession,
  change,
  freshId,
  ledgerOf,
  requested,
  slotReserved,
} from '#test/support/events.fixture.ts';
import { settledWithin } from '#test/support/settled-within.ts';
import { startFlakyTcpProxy } from '#test/support/servers/flaky-tcp-proxy.ts';
import {
  appendEach,
  historyOf,
  openRealLog,
  type RealLog,
} from '#test/support/stores/event-stores.ts';
import { lastOf } from '#test/support/stores/last-of.ts';

const never = new AbortController().signal;

describe('the event store on JetStream', () => {
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

  test('ends a subscription at once though the server is down', async () => {
    const stop = new AbortController();
    const options = { subjects: filters.all, after: 0, signal: stop.signal, onUnreadable() {} };
    const follower = opened.eventStore.subscribe(options)[Symbol.asyncIterator]();
    const next = follower.next();
    await opened.nats.kill();
    await expect.poll(() => opened.connection.isConnected()).toBe(false);
    stop.abort();
    expect((await settledWithin(2_000, next)).done).toBe(true);
  });

  test('skips an event that cannot be decoded, and reports it', async () => {
    const { eventStore, connection } = opened;
    const session = aSession();
    const [first = 0] = await appendEach(eventStore, session, 1);
    const { seq } = await connection.js.publish(subjectOf(session, 'session.queued'), 'not JSON');
    const appended = await eventStore.append([change(seq, accessed(session))]);
    expect(appended).toMatchObject({ outcome: 'appended' });

    const stop = new AbortController();
    const poison: number[] = [];
    const onUnreadable = ({ sequence }: { sequence: number }) => void poison.push(sequence);
    const options = {
      subjects: [streamFilter(session)],
      after: 0,
      signal: stop.signal,
      onUnreadable,
    };
    const received: number[] = [];
    for await (const batch of eventStore.subscribe(options)) {
      received.push(...batch.map((event) => event.sequence));
      if (received.length === 2) break;
    }
    expect(received).toEqual([first, seq + 1]);
    expect(poison).toEqual([seq]);
    await expect(historyOf(eventStore, session)).rejects.toThrow('queued');

    const inbox = await opened.openWorkQueue(freshId('inbox'), [streamFilter(session)]);
    const taken: (number | undefined)[] = [];
    for (const _ of received) {
      const delivery = await inbox.next(20_000, never);
      taken.push(delivery?.item.sequence);
      await delivery?.ack();
    }
    expect(taken).toEqual([first, seq + 1]);
    expect(await parkedReasons(opened, 1)).toEqual([expect.stringContaining('queued')]);
  });

  test('keeps an advisory of each dead letter, with its reason', async () => {
    const session = aSession();
    await appendEach(opened.eventStore, session, 1);
    const inbox = await opened.openWorkQueue(freshId('inbox'), [streamFilter(session)]);
    (await inbox.next(20_000, never))?.deadLetter('the image\nis gone');
    expect(await parkedReasons(opened, 1)).toEqual(['the image is gone']);
  });

  test('finds the command of a lost answer, though the aggregate has changed since', async () => {
    const { nats, other } = opened;
    await using proxy = await startFlakyTcpProxy(nats.port);
    const url = `nats://127.0.0.1:${proxy.port}`;
    await using connection = await connectJetStream({ url });
    const eventStore = createJetStreamEventStore(connection);
    const session = aSession();
    const metadata = aCause();
    const changes = [
      change(0, requested(session, metadata)),
      change(0, slotReserved(session, metadata)),
    ];
    // The answer to the append, and not to a ping that is under way.
    proxy.breakOn('"stream":"EVENTS"');
    const appending = eventStore.append(changes);
    await expect.poll(() => other.readLast(session)).not.toBeNull();
    const sequence = await lastOf(other, [streamFilter(session)]);
    await other.append([change(sequence, accessed(session))]);
    expect(await appending).toEqual({ outcome: 'duplicate' });
    expect(await eventStore.append(changes)).toEqual({ outcome: 'duplicate' });
    expect(await historyOf(other, session)).toHaveLength(2);
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

/** The reasons in the advisories of dead letters, once there are `count` of them. */
async function parkedReasons({ connection }: RealLog, count: number): Promise<string[]> {
  const { jsm } = connection;
  await expect
    .poll(async () => (await jsm.streams.info(ADVISORY_STREAM)).state.messages)
    .toBe(count);
  const reasons: string[] = [];
  for (let seq = 1; seq <= count; seq++) {
    const advisory = await jsm.streams.getMessage(ADVISORY_STREAM, { seq });
    reasons.push(advisory?.json<{ reason: string }>().reason ?? '');
  }
  return reasons;
}
