import { JetStreamApiError, JetStreamStatusError } from '@nats-io/jetstream/internal';
import { PermissionViolationError } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import { EVENTS_STREAM, streamFilter, filters } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamWorkQueues } from '#src/kernel/messaging/jetstream/jetstream-work-queue.ts';
import { redeliver } from '#src/kernel/messaging/jetstream/redelivery.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { withSharedSubscription } from '#src/kernel/event-store/shared-subscription.ts';
import { subscribeToSessions } from '#src/kernel/event-store/session-events.ts';
import { accessed, aSession, change, freshId, requested } from '#test/support/events.fixture.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';
import { appendEach, eventLogs, type OpenedLog } from '#test/support/stores/event-stores.ts';

/**
 * Subscriptions to an event store that answers with an unexpected error for a while, and correctly
 * afterwards.
 */

const SOON = { timeout: 60_000 };
const apiError = (code: number, err_code: number, description: string) =>
  new JetStreamApiError({ code, err_code, description });
const answers = [
  { answer: 'no such stream (404)', error: apiError(404, 10_059, 'stream not found') },
  { answer: 'no such consumer (404)', error: apiError(404, 10_014, 'consumer not found') },
  { answer: 'too many consumers (400)', error: apiError(400, 10_026, 'maximum consumers limit') },
  {
    answer: 'that it is not allowed (403)',
    error: new PermissionViolationError('Permissions Violation', 'publish', '$JS.API.>'),
  },
  { answer: 'a conflict (409)', error: new JetStreamStatusError('Consumer Deleted', 409) },
  { answer: 'nothing sensible', error: new TypeError('a bug') },
];

/**
 * An event store whose subscriptions and reads fail with the error while it is set; what they have
 * read is lost.
 */
function refusing(eventStore: EventStore) {
  let error: Error | null = null;
  let refused = 0;
  const refuse = () => {
    if (error === null) return;
    refused += 1;
    throw error;
  };
  async function* refusable(batches: AsyncIterable<RecordedEvent[]>) {
    refuse();
    for await (const batch of batches) {
      refuse();
      yield batch;
    }
  }
  return {
    set: (next: Error | null) => {
      error = next;
    },
    refused: () => refused,
    log: {
      ...eventStore,
      read: (options) => refusable(eventStore.read(options)),
      subscribe: (options) => refusable(eventStore.subscribe(options)),
    } satisfies EventStore,
  };
}

/** The sequences that a subscription receives. */
function listen(eventStore: EventStore, subjects: readonly string[], after = 0) {
  const stop = new AbortController();
  const received: number[] = [];
  async function follow() {
    const options = { subjects, after, signal: stop.signal, onUnreadable: () => undefined };
    for await (const batch of eventStore.subscribe(options))
      received.push(...batch.map(({ sequence }: RecordedEvent) => sequence));
  }
  const following = follow();
  // A subscription that ends is detected by the events that are missing.
  following.catch(() => undefined);
  return {
    received,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await following.catch(() => undefined);
    },
  };
}

const adapters = eventLogs.filter(({ adapter }) => !adapter.includes('one reader'));
describe.each(adapters)('a shared subscription ($adapter)', ({ open }) => {
  let opened: OpenedLog;
  beforeEach(async () => {
    opened = await open();
  });
  afterEach(() => opened[Symbol.asyncDispose]());

  test.each(answers)('after $answer, every subscriber gets each event once', async ({ error }) => {
    const odd = refusing(opened.eventStore);
    const failures: unknown[] = [];
    const onFailure = (failure: unknown) => failures.push(failure);
    await using log = await withSharedSubscription(odd.log, { onFailure, silentAfterMs: 0 });
    const session = aSession();
    await using early = listen(log, [streamFilter(session)]);
    const sequences = await appendEach(opened.other, session, 3);
    await expect.poll(() => early.received, SOON).toEqual(sequences);
    expect(log.isReceiving()).toBe(true);

    odd.set(error);
    const more = async (minute: number) => {
      const appended = await opened.other.append([
        change(sequences.at(-1) ?? 0, accessed(session, minute)),
      ]);
      if (appended.outcome === 'appended') sequences.push(...appended.sequences);
    };
    for (const minute of [4, 5, 6]) await more(minute);
    // Once while it is read, and once at another attempt.
    await expect.poll(() => odd.refused(), SOON).toBeGreaterThan(1);
    await expect.poll(() => log.isReceiving(), SOON).toBe(false);
    odd.set(null);
    await more(7);
    await using late = listen(log, [streamFilter(session)]);
    for (const { received } of [early, late])
      await expect.poll(() => received, SOON).toEqual(sequences);
    expect(log.isReceiving()).toBe(true);
    expect(new Set(failures)).toEqual(new Set([error]));
  });

  test('a subscriber of older events continues where its read failed', async () => {
    const session = aSession();
    const sequences = await appendEach(opened.other, session, 6);
    const odd = refusing(opened.eventStore);
    await using log = await withSharedSubscription(odd.log);
    odd.set(apiError(404, 10_059, 'stream not found'));
    await using late = listen(log, [streamFilter(session)]);
    await expect.poll(() => odd.refused(), SOON).toBeGreaterThan(1);
    odd.set(null);
    await expect.poll(() => late.received, SOON).toEqual(sequences);
  });

  test('a subscriber at the end continues after its last event and reports the failure', async () => {
    const odd = refusing(opened.eventStore);
    const failures: unknown[] = [];
    await using tail = await subscribeToSessions(odd.log, (failure) => failures.push(failure));
    const received: number[] = [];
    tail.watchAll(({ sequence }) => received.push(sequence));
    const first = await appendEach(opened.other, aSession(), 2);
    await expect.poll(() => received, SOON).toEqual(first);
    odd.set(new Error('not now'));
    const second = await appendEach(opened.other, aSession(), 2);
    await expect.poll(() => odd.refused(), SOON).toBeGreaterThan(1);
    odd.set(null);
    await expect.poll(() => received, SOON).toEqual([...first, ...second]);
    expect(failures).toContainEqual(new Error('not now'));
  });
});

describe('on a server that revokes a permission for a while', () => {
  /** Whether consumers may be created, as nats.conf states it. */
  const users = (mayMake: boolean, mayReceive = true) => {
    const denied = mayMake ? [] : ['$JS.API.CONSUMER.CREATE.>', '$JS.API.CONSUMER.DURABLE.>'];
    const deniedReplies = mayReceive ? [] : ['_INBOX_app.>', 'retry.>'];
    const permissions = JSON.stringify({
      publish: { allow: ['>'], deny: denied },
      subscribe: { allow: ['>'], deny: deniedReplies },
    });
    return `authorization: { users: [ { user: app, password: pw, permissions: ${permissions} } ] }`;
  };
  let nats: RealNats;
  beforeEach(async () => {
    nats = await startNats(users(true));
  });
  afterEach(() => nats[Symbol.asyncDispose]());

  function connect(onFailure?: (error: unknown, what: string) => void) {
    const url = nats.url.replace('//', '//app:pw@');
    return connectJetStream({ url, ...(onFailure === undefined ? {} : { onFailure }) });
  }

  test('subscribers get every event once, and failures are reported', async () => {
    await using connection = await connect();
    const failures: unknown[] = [];
    await using log = await withSharedSubscription(createJetStreamEventStore(connection), {
      onFailure: (error) => failures.push(error),
    });
    const session = aSession();
    await using early = listen(log, [streamFilter(session)]);
    await using tail = await subscribeToSessions(log, () => undefined);
    const tailed: number[] = [];
    tail.watchAll(({ sequence }) => tailed.push(sequence));
    const first = await log.append([change(0, requested(session))]);
    await expect.poll(() => [early.received, tailed], SOON).toEqual([[1], [1]]);
    expect(first.outcome).toBe('appended');

    await nats.reconfigure(users(false));
    await expect.poll(() => failures.length, SOON).toBeGreaterThan(1);
    await expect.poll(() => log.isReceiving(), SOON).toBe(false);
    await log.append([change(1, accessed(session, 1))]);
    await nats.reconfigure(users(true));
    await log.append([change(2, accessed(session, 2))]);
    await expect
      .poll(() => [early.received, tailed], SOON)
      .toEqual([
        [1, 2, 3],
        [1, 2, 3],
      ]);
    await expect.poll(() => log.isReceiving(), SOON).toBe(true);
    expect(failures.every((error) => /ermission/.test(String(error)))).toBe(true);
  });

  test('a work queue continues, though its consumer is deleted meanwhile', async () => {
    const failures: string[] = [];
    await using connection = await connect((error, what) =>
      failures.push(`${what}: ${String(error)}`),
    );
    const eventStore = createJetStreamEventStore(connection);
    const name = freshId('queue');
    const inbox = await createJetStreamWorkQueues(connection)(name, filters.sessions);
    const waiting = inbox.next(60_000, new AbortController().signal);
    await nats.reconfigure(users(false));
    await expect.poll(() => connection.isConnected(), SOON).toBe(true);
    await connection.jsm.consumers.delete(EVENTS_STREAM, name);
    await expect.poll(() => failures.length, SOON).toBeGreaterThan(1);
    expect(failures[0]).toContain(name);
    await nats.reconfigure(users(true));
    await eventStore.append([change(0, requested(aSession()))]);
    expect((await waiting)?.item.sequence).toBe(1);
  });

  test('a work queue continues and accepts retries, though it may not subscribe for a while', async () => {
    const failures: string[] = [];
    await using connection = await connect((_, what) => failures.push(what));
    await using other = await connect();
    const name = freshId('queue');
    const inbox = await createJetStreamWorkQueues(connection)(name, filters.sessions);
    const soon = () => inbox.next(60_000, new AbortController().signal);
    const first = soon();
    await nats.reconfigure(users(true, false));
    await expect.poll(() => failures.join(), SOON).toContain(name);
    await nats.reconfigure(users(true));
    await createJetStreamEventStore(other).append([change(0, requested(aSession()))]);
    const delivery = await first;
    expect(delivery?.item.sequence).toBe(1);
    await delivery?.ack();

    // An operator's retry arrives again, too.
    const retry = { stream: EVENTS_STREAM, by: name, sequence: 1 };
    const handling = soon().then((retried) => retried?.ack());
    await expect.poll(() => redeliver(other, retry), SOON).toEqual({ outcome: 'mended' });
    await handling;
  });
});
