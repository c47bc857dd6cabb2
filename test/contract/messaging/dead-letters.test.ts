import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADVISORY_STREAM, streamFilter } from '#events/subjects.ts';
import { consume } from '#src/kernel/messaging/work-queue.ts';
import { createJetStreamDeadLetters } from '#src/kernel/messaging/jetstream/jetstream-dead-letters.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import type { DeadLetterStore } from '#src/kernel/messaging/dead-letters.ts';
import { aSession, change, freshId, requested } from '#test/support/events.fixture.ts';
import { elsewhere, natsServers } from '#test/support/servers/containers.ts';
import { eventually } from '#test/support/service/service.ts';
import { openLogOn, openRealLog, type RealLog } from '#test/support/stores/event-stores.ts';

let real: RealLog;
beforeAll(async () => {
  real = await openRealLog();
});
afterAll(() => real[Symbol.asyncDispose]());

type OpenedDeadLetters = AsyncDisposable & { deadLetters: DeadLetterStore };
const adapters: { adapter: string; open: () => Promise<OpenedDeadLetters> }[] = [
  ...elsewhere([{ adapter: 'memory', open: openMemory }]),
  ...natsServers.map(({ where, start }) => ({
    adapter: `JetStream in a ${where}`,
    async open() {
      const opened = await openLogOn(await start());
      return { ...opened, deadLetters: createJetStreamDeadLetters(opened.connection) };
    },
  })),
];

async function openMemory(): Promise<OpenedDeadLetters> {
  return { deadLetters: createMemoryDeadLetters(), async [Symbol.asyncDispose]() {} };
}

describe.each(adapters)('dead letters in $adapter', ({ open }) => {
  let opened: OpenedDeadLetters;
  let deadLetters: DeadLetterStore;
  beforeAll(async () => {
    opened = await open();
    ({ deadLetters } = opened);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  function anEvent(sequence: number, by = `${freshId('view')}:v1`) {
    return { by, sequence, subject: 'evt.acme.session.s1.queued', reason: 'not like this' };
  }
  async function listed(by: string) {
    return (await deadLetters.list()).filter((event) => event.by === by);
  }

  test('dead letters are listed in the order of the event store, with their reasons', async () => {
    const by = `${freshId('view')}:v1`;
    await Promise.all([12, 3].map((sequence) => deadLetters.add(anEvent(sequence, by))));
    expect(await listed(by)).toEqual(
      [3, 12].map((sequence) => ({
        ...anEvent(sequence, by),
        kind: 'projection',
        stream: 'EVENTS',
        at: expect.stringMatching(/^\d{4}-.*Z$/),
        attempts: 1,
      })),
    );
  });

  test('the first reason for an event is kept', async () => {
    const event = anEvent(7);
    await deadLetters.add(event);
    await deadLetters.add({ ...event, reason: 'again' });
    expect((await listed(event.by)).map(({ reason }) => reason)).toEqual(['not like this']);
  });

  test('it is resolved, and skipped, by several at once', async () => {
    const by = `${freshId('view')}:v1`;
    const [first, inside, other] = [anEvent(6, by), anEvent(7, by), anEvent(8, by)];
    for (const one of [first, inside, other]) await deadLetters.add(one);
    const eight = Array.from({ length: 8 });
    // The server has another answer for each of the two.
    for (const one of [inside, first]) await Promise.all(eight.map(() => deadLetters.resolve(one)));
    await Promise.all(eight.map((_, at) => deadLetters.skip(other, `operator ${at}`, 'a test')));
    expect(await listed(by)).toEqual([]);
  });

  test('each attempt that fails is counted, and nothing where there is no dead letter', async () => {
    const event = anEvent(7);
    await deadLetters.add(event);
    await deadLetters.failedAgain(event);
    await deadLetters.failedAgain(event);
    expect((await listed(event.by)).map(({ attempts }) => attempts)).toEqual([3]);
    const other = anEvent(8);
    await deadLetters.failedAgain(other);
    expect(await listed(other.by)).toEqual([]);
  });

  test('a skipped event is not listed again, however often it fails', async () => {
    const event = anEvent(7);
    await deadLetters.add(event);
    await deadLetters.skip(event, 'ada');
    await deadLetters.add(event);
    expect(await listed(event.by)).toEqual([]);
  });

  test('a resolved event becomes a dead letter again when it fails again', async () => {
    const event = anEvent(7);
    await deadLetters.add(event);
    await deadLetters.resolve(event);
    expect(await listed(event.by)).toEqual([]);
    await deadLetters.resolve(event);
    await deadLetters.add({ ...event, reason: 'again' });
    expect((await listed(event.by)).map(({ reason }) => reason)).toEqual(['again']);
  });
});

test('a work queue’s dead letter is listed too, until an operator decides on it', async () => {
  const deadLetters = createJetStreamDeadLetters(real.connection);
  const by = freshId('queue');
  const session = aSession();
  await real.eventStore.append([change(0, requested(session))]);
  const inbox = await real.openWorkQueue(by, [streamFilter(session)]);
  const delivery = await inbox.next(60_000, new AbortController().signal);
  delivery?.deadLetter('cannot  be\nhandled');
  const mine = async () => (await deadLetters.list()).filter((event) => event.by === by);
  await eventually(async () => (await mine()).length === 1, 'it is listed');
  expect(await mine()).toMatchObject([
    {
      kind: 'work_queue',
      stream: 'EVENTS',
      sequence: delivery?.item.sequence,
      reason: 'cannot be handled',
    },
  ]);
  await deadLetters.skip({ by, sequence: delivery?.item.sequence ?? 0 }, 'ada');
  expect(await mine()).toEqual([]);
  expect((await real.connection.jsm.streams.info(ADVISORY_STREAM)).state.messages).toBe(0);
});

describe('a retry of a work queue’s dead letter', () => {
  const { signal } = new AbortController();

  /** A queue of its own with one item, which is a dead letter. */
  async function aDeadLetter() {
    const by = freshId('queue');
    const session = aSession();
    await real.eventStore.append([change(0, requested(session))]);
    const inbox = await real.openWorkQueue(by, [streamFilter(session)]);
    const delivery = await inbox.next(60_000, signal);
    delivery?.deadLetter('cannot be handled');
    const deadLetters = createJetStreamDeadLetters(real.connection);
    const mine = async () => (await deadLetters.list()).filter((event) => event.by === by);
    await eventually(async () => (await mine()).length === 1, 'it is listed');
    const [event] = await mine();
    if (event === undefined) throw new Error('there is no dead letter');
    return { deadLetters, event, inbox, mine, item: delivery?.item };
  }

  test('goes to a consumer of the queue and, once handled, removes the dead letter', async () => {
    const { deadLetters, event, inbox, mine, item } = await aDeadLetter();
    const retried = deadLetters.redeliver(event);
    const again = await inbox.next(60_000, signal);
    expect(again?.item).toEqual(item);
    expect(again?.isRetry).toBe(true);
    await again?.ack();
    expect(await retried).toEqual({ outcome: 'mended' });
    expect(await mine()).toEqual([]);
    expect(await inbox.next(10, signal)).toBeNull();
  });

  test('that fails keeps the dead letter and returns the reason', async () => {
    const { deadLetters, event, inbox, mine } = await aDeadLetter();
    const consuming = new AbortController();
    const consumed = consume(inbox, {
      signal: consuming.signal,
      handle: () => Promise.reject(new Error('not this one')),
      deliveriesMax: 3,
      onFailure() {},
    });
    const reason = 'Error: not this one';
    expect(await deadLetters.redeliver(event)).toEqual({ outcome: 'fails', reason });
    consuming.abort();
    await consumed;
    expect(await mine()).toEqual([event]);
  });

  test('fails if the queue has no consumer, or the event does not exist', async () => {
    const { deadLetters, event, mine } = await aDeadLetter();
    const unread = await deadLetters.redeliver({ ...event, by: freshId('queue') });
    const reason = 'no running process consumes this work queue';
    expect(unread).toEqual({ outcome: 'fails', reason });
    const gone = await deadLetters.redeliver({ ...event, sequence: 1_000_000 });
    expect(gone).toMatchObject({
      outcome: 'fails',
      reason: expect.stringContaining('no longer exists'),
    });
    expect(await mine()).toEqual([event]);
  });
});

test('an event that cannot be decoded supersedes no earlier event of its aggregate', async () => {
  const session = aSession();
  await real.eventStore.append([change(0, requested(session))]);
  const sequence = await real.eventStore.lastSequence();
  const garbage = `${streamFilter(session).slice(0, -1)}queued`;
  await real.connection.js.publish(garbage, '{"not":"an event"}');
  const received: number[] = [];
  const unreadable: number[] = [];
  const stop = new AbortController();
  const options = {
    subjects: [streamFilter(session)],
    after: 0,
    signal: stop.signal,
    batchMax: 4_000,
  };
  const batches = real.eventStore.subscribe({
    ...options,
    canSkip: () => true,
    onUnreadable(poison) {
      unreadable.push(poison.sequence);
      stop.abort();
    },
  });
  for await (const batch of batches) received.push(...batch.map((event) => event.sequence));
  expect([received, unreadable]).toEqual([[sequence], [sequence + 1]]);
});

test('more dead letters than fit in one answer are listed', async () => {
  const deadLetters = createJetStreamDeadLetters(real.connection);
  const by = `${freshId('view')}:v1`;
  await Promise.all(
    Array.from({ length: 1_100 }, (_, n) =>
      deadLetters.add({ by, sequence: n + 1, subject: 's', reason: 'r' }),
    ),
  );
  const mine = (await deadLetters.list()).filter((event) => event.by === by);
  expect(mine.map(({ sequence }) => sequence)).toEqual(
    Array.from({ length: 1_100 }, (_, n) => n + 1),
  );
});
