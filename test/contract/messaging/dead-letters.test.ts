import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADVISORY_STREAM, filterOf } from '#events/subjects.ts';
import { consume } from '#src/messaging/work-queue.ts';
import { createJetStreamParked } from '#src/messaging/jetstream/jetstream-dead-letters.ts';
import { createMemoryParked } from '#src/messaging/dead-letters.memory.ts';
import type { ParkedEvents } from '#src/messaging/dead-letters.ts';
import { aSession, change, freshId, requested } from '#test/support/events.fixture.ts';
import { eventually } from '#test/support/service/service.ts';
import { openRealLog, type RealLog } from '#test/support/stores/event-stores.ts';

let real: RealLog;
beforeAll(async () => {
  real = await openRealLog();
});
afterAll(() => real[Symbol.asyncDispose]());

const adapters: { adapter: string; open: () => ParkedEvents }[] = [
  { adapter: 'memory', open: () => createMemoryParked() },
  { adapter: 'JetStream', open: () => createJetStreamParked(real.connection) },
];

describe.each(adapters)('parked events in $adapter', ({ open }) => {
  let parked: ParkedEvents;
  beforeAll(() => {
    parked = open();
  });

  function anEvent(sequence: number, by = `${freshId('view')}:v1`) {
    return { by, sequence, subject: 'evt.acme.session.s1.queued', reason: 'not like this' };
  }
  async function listed(by: string) {
    return (await parked.list()).filter((event) => event.by === by);
  }

  test('what is parked is listed in the order of the log, with its reason', async () => {
    const by = `${freshId('view')}:v1`;
    await Promise.all([12, 3].map((sequence) => parked.park(anEvent(sequence, by))));
    expect(await listed(by)).toEqual(
      [3, 12].map((sequence) => ({
        ...anEvent(sequence, by),
        kind: 'projection',
        stream: 'EVENTS',
        at: expect.stringMatching(/^\d{4}-.*Z$/),
      })),
    );
  });

  test('the first word on an event stands', async () => {
    const event = anEvent(7);
    await parked.park(event);
    await parked.park({ ...event, reason: 'again' });
    expect((await listed(event.by)).map(({ reason }) => reason)).toEqual(['not like this']);
  });

  test('a skipped event is not listed again, however often it is met', async () => {
    const event = anEvent(7);
    await parked.park(event);
    await parked.skip(event, 'ada');
    await parked.park(event);
    expect(await listed(event.by)).toEqual([]);
  });

  test('an event that was made good is parked again when it fails again', async () => {
    const event = anEvent(7);
    await parked.park(event);
    await parked.forget(event);
    expect(await listed(event.by)).toEqual([]);
    await parked.forget(event);
    await parked.park({ ...event, reason: 'again' });
    expect((await listed(event.by)).map(({ reason }) => reason)).toEqual(['again']);
  });
});

test('what a work queue has parked is listed too, until it is decided on', async () => {
  const parked = createJetStreamParked(real.connection);
  const by = freshId('queue');
  const session = aSession();
  await real.log.append([change(0, requested(session))]);
  const inbox = await real.log.inbox(by, [filterOf(session)]);
  const delivery = await inbox.next(5_000, new AbortController().signal);
  delivery?.park('nobody  can do\nthis');
  const mine = async () => (await parked.list()).filter((event) => event.by === by);
  await eventually(async () => (await mine()).length === 1, 'it is listed');
  expect(await mine()).toMatchObject([
    {
      kind: 'inbox',
      stream: 'EVENTS',
      sequence: delivery?.item.sequence,
      reason: 'nobody can do this',
    },
  ]);
  await parked.skip({ by, sequence: delivery?.item.sequence ?? 0 }, 'ada');
  expect(await mine()).toEqual([]);
  expect((await real.connection.jsm.streams.info(ADVISORY_STREAM)).state.messages).toBe(0);
});

describe('what a work queue has parked and is tried again', () => {
  const { signal } = new AbortController();

  /** A queue of its own that has parked its only item. */
  async function aParked() {
    const by = freshId('queue');
    const session = aSession();
    await real.log.append([change(0, requested(session))]);
    const inbox = await real.log.inbox(by, [filterOf(session)]);
    const delivery = await inbox.next(15_000, signal);
    delivery?.park('nobody can do this');
    const parked = createJetStreamParked(real.connection);
    const mine = async () => (await parked.list()).filter((event) => event.by === by);
    await eventually(async () => (await mine()).length === 1, 'it is listed');
    const [event] = await mine();
    if (event === undefined) throw new Error('nothing is parked');
    return { parked, event, inbox, mine, item: delivery?.item };
  }

  test('comes to whoever takes from the queue, and is parked no more once that is done', async () => {
    const { parked, event, inbox, mine, item } = await aParked();
    const retried = parked.redeliver(event);
    const again = await inbox.next(15_000, signal);
    expect(again?.item).toEqual(item);
    await again?.ack();
    expect(await retried).toEqual({ outcome: 'mended' });
    expect(await mine()).toEqual([]);
    expect(await inbox.next(10, signal)).toBeNull();
  });

  test('stays parked where it fails again, and whoever asked is told why', async () => {
    const { parked, event, inbox, mine } = await aParked();
    const consuming = new AbortController();
    const consumed = consume(inbox, {
      signal: consuming.signal,
      handle: () => Promise.reject(new Error('not this one')),
      deliveriesMax: 3,
      onFailure() {},
    });
    const reason = 'Error: not this one';
    expect(await parked.redeliver(event)).toEqual({ outcome: 'fails', reason });
    consuming.abort();
    await consumed;
    expect(await mine()).toEqual([event]);
  });

  test('stays parked where nobody takes from the queue, or the event is not there', async () => {
    const { parked, event, mine } = await aParked();
    const nobody = await parked.redeliver({ ...event, by: freshId('queue') });
    expect(nobody).toMatchObject({ outcome: 'fails', reason: expect.stringContaining('nobody') });
    const gone = await parked.redeliver({ ...event, sequence: 1_000_000 });
    expect(gone).toMatchObject({ outcome: 'fails', reason: expect.stringContaining('not hold') });
    expect(await mine()).toEqual([event]);
  });
});

test('an event that cannot be read stands for none of its aggregate before it', async () => {
  const session = aSession();
  await real.log.append([change(0, requested(session))]);
  const sequence = await real.log.lastSequence();
  const garbage = `${filterOf(session).slice(0, -1)}queued`;
  await real.connection.js.publish(garbage, '{"not":"an event"}');
  const heard: number[] = [];
  const unreadable: number[] = [];
  const stop = new AbortController();
  const options = { subjects: [filterOf(session)], after: 0, signal: stop.signal, batchMax: 4_000 };
  const batches = real.log.follow({
    ...options,
    mayLeaveOut: () => true,
    onMalformed(poison) {
      unreadable.push(poison.sequence);
      stop.abort();
    },
  });
  for await (const batch of batches) heard.push(...batch.map((event) => event.sequence));
  expect([heard, unreadable]).toEqual([[sequence], [sequence + 1]]);
});

test('more than one answer’s worth is listed', async () => {
  const parked = createJetStreamParked(real.connection);
  const by = `${freshId('view')}:v1`;
  await Promise.all(
    Array.from({ length: 1_100 }, (_, n) =>
      parked.park({ by, sequence: n + 1, subject: 's', reason: 'r' }),
    ),
  );
  const mine = (await parked.list()).filter((event) => event.by === by);
  expect(mine.map(({ sequence }) => sequence)).toEqual(
    Array.from({ length: 1_100 }, (_, n) => n + 1),
  );
});
