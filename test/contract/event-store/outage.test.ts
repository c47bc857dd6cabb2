import { headers } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ADVISORY_STREAM, streamFilter, filters, subjectOf } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import {
  accessed,
  aCause,
  aSession,
  change,
  freshId,
  requested,
  slotReserved,
} from '#test/support/events.fixture.ts';
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

  test('ends a subscription at once though the server is down', async () => {
    const stop = new AbortController();
    const options = { subjects: filters.all, after: 0, signal: stop.signal, onUnreadable() {} };
    const follower = opened.eventStore.subscribe(options)[Symbol.asyncIterator]();
    const next = follower.next();
    await opened.nats.kill();
    await expect.poll(() => opened.connection.isConnected()).toBe(false);
    stop.abort();
    // The server stays down, so that it would wait for ever.
    expect((await next).done).toBe(true);
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
      const delivery = await inbox.next(60_000, never);
      taken.push(delivery?.item.sequence);
      await delivery?.ack();
    }
    expect(taken).toEqual([first, seq + 1]);
    expect(await deadLetterReasons(opened, 1)).toEqual([expect.stringContaining('queued')]);
  });

  test('ends before a batch of which a part is stored', async () => {
    const { eventStore, connection } = opened;
    const [first = 0] = await appendEach(eventStore, aSession(), 1);
    // What a reader sees while the server stores a batch: its messages without the last.
    for (const part of ['1', '2']) {
      const header = headers();
      header.set('Nats-Batch-Sequence', part);
      await connection.js.publish('evt.acme.session.s1.queued', '{}', { headers: header });
    }
    expect(await eventStore.lastSequence()).toBe(first);
  });

  test('keeps an advisory of each dead letter, with its reason', async () => {
    const session = aSession();
    await appendEach(opened.eventStore, session, 1);
    const inbox = await opened.openWorkQueue(freshId('inbox'), [streamFilter(session)]);
    (await inbox.next(60_000, never))?.deadLetter('the image\nis gone');
    expect(await deadLetterReasons(opened, 1)).toEqual(['the image is gone']);
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

/** The reasons in the advisories of dead letters, once there are `count` of them. */
async function deadLetterReasons({ connection }: RealLog, count: number): Promise<string[]> {
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
