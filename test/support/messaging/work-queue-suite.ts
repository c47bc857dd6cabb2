import { expect, test } from 'vitest';
import { streamFilter } from '#events/subjects.ts';
import type { RecordedEvent } from '#events/events.ts';
import type { Delivery, OpenWorkQueue, WorkQueue } from '#src/kernel/messaging/work-queue.ts';
import { accessed, aSession, change, freshId, requested } from '#test/support/events.fixture.ts';
import {
  appendOne,
  LEASE_MS,
  type LogAdapter,
  type OpenedLog,
} from '#test/support/stores/event-stores.ts';
import { hooks } from '#test/support/time/hooks.ts';

const never = new AbortController().signal;
const SOON_MS = 60_000;
/** A lease that ends in no test. */
const PATIENT_MS = 600_000;

/** What holds without a look at the clock: who gets which item. */
export function workQueueRules({ open }: LogAdapter, { beforeAll, afterAll } = hooks): void {
  let opened: OpenedLog;
  beforeAll(async () => {
    opened = await open(PATIENT_MS);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('delivers the oldest item first, then what is appended', async () => {
    const { inbox, sequences, append } = await work(2, opened);
    for (const sequence of sequences) {
      const delivery = await take(inbox);
      expect(delivery.item.sequence).toBe(sequence);
      expect(delivery.deliveries).toBe(1);
      await delivery.ack();
    }
    const waiting = take(inbox);
    const sequence = await append();
    expect((await waiting).item.sequence).toBe(sequence);
  });

  test('returns null if no item arrives within the bound', async () => {
    const { inbox } = await work(0, opened);
    expect(await inbox.next(0, never)).toBeNull();
    expect(await inbox.next(30, never)).toBeNull();
  });

  test('delivers an existing item without waiting', async () => {
    const { inbox } = await work(1, opened);
    // A server that answers late has put the item back.
    await expect.poll(() => inbox.next(0, never)).not.toBeNull();
  });

  test('loses no item to a wait that was aborted', async () => {
    const { inbox, append } = await work(0, opened);
    const stop = new AbortController();
    const waiting = inbox.next(SOON_MS, stop.signal);
    stop.abort();
    expect(await waiting).toBeNull();
    expect(await inbox.next(SOON_MS, stop.signal)).toBeNull();
    const sequence = await append();
    expect((await take(inbox)).item.sequence).toBe(sequence);
  });

  test('loses no item to a wait that is aborted while one is in transit', async () => {
    const { inbox, other, append } = await work(0, opened);
    for (let round = 0; round < 20; round++) {
      const stop = new AbortController();
      const waiting = inbox.next(SOON_MS, stop.signal);
      const appending = append();
      await new Promise(setImmediate);
      stop.abort();
      const sequence = await appending;
      const delivery = (await waiting) ?? (await take(other));
      expect(delivery.item.sequence).toBe(sequence);
      await delivery.ack();
    }
  });

  test('delivers each item to one consumer', async () => {
    const { inbox, other, sequences } = await work(30, opened);
    const taken: number[] = [];
    async function consume(from: WorkQueue<RecordedEvent>) {
      while (taken.length < sequences.length) {
        const delivery = await from.next(20, never);
        if (delivery === null) continue;
        taken.push(delivery.item.sequence);
        await delivery.ack();
      }
    }
    await Promise.all([consume(inbox), consume(other), consume(inbox)]);
    expect(taken.toSorted((a, b) => a - b)).toEqual(sequences);
  });

  test('counts the items that no consumer has taken', async () => {
    const { inbox, other, append } = await work(3, opened);
    expect(await inbox.pending()).toBe(3);
    const delivery = await take(inbox);
    expect(await other.pending()).toBe(2);
    await delivery.ack();
    await append();
    await expect.poll(() => inbox.pending()).toBe(3);
  });
}

/** What leases and delays promise, on a lease of half a second. */
export function workQueueTimes({ open }: LogAdapter, { beforeAll, afterAll } = hooks): void {
  let opened: OpenedLog;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('delivers an item again after the time that its consumer asked for', async () => {
    await using patient = await open(PATIENT_MS);
    const { inbox, other } = await work(1, patient);
    const first = await take(inbox);
    const askedAt = performance.now();
    first.retryAfter(200);
    const again = await take(other);
    expect(performance.now() - askedAt).toBeGreaterThan(190);
    expect(again.item).toEqual(first.item);
    expect(again.deliveries).toBe(2);
  });

  test('delivers an item that is given back to another consumer that waits, at the latest the third time', async () => {
    await using patient = await open(PATIENT_MS);
    const unbounded = (openQueue: OpenWorkQueue): OpenWorkQueue => {
      return (name, subjects) => openQueue(name, subjects, { isBounded: false });
    };
    let { inbox: holder, other: waiter } = await work(1, {
      ...patient,
      openWorkQueue: unbounded(patient.openWorkQueue),
      otherOpenWorkQueue: unbounded(patient.otherOpenWorkQueue),
    });
    const stop = new AbortController();
    const wait = (queue: WorkQueue<RecordedEvent>) => queue.next(SOON_MS, stop.signal);
    let delivery = await take(holder);
    let waiting = wait(waiter);
    // Answered after its wait has begun, as both requests go through one connection.
    await waiter.pending();
    for (let round = 0; round < 5; round += 1) {
      const turns = { holder: 0, waiter: 0 };
      let waitingAgain: typeof waiting | null = null;
      while (turns.waiter === 0 && turns.holder < 3) {
        delivery.retryAfter(40);
        waitingAgain = wait(holder);
        const next = await Promise.race([
          waiting.then((found) => ({ found, by: 'waiter' as const })),
          waitingAgain.then((found) => ({ found, by: 'holder' as const })),
        ]);
        expect(next.found).toMatchObject({ item: delivery.item });
        turns[next.by] += 1;
        delivery = next.found ?? delivery;
      }
      expect(turns.waiter).toBe(1);
      waiting = waitingAgain ?? waiting;
      [holder, waiter] = [waiter, holder];
    }
    stop.abort();
    await waiting;
    await delivery.ack();
  });

  test('delivers an item again when its consumer is lost', async () => {
    const { inbox, other } = await work(1, opened);
    const takenAt = performance.now();
    const first = await take(inbox);
    const again = await take(other);
    expect(again.item.sequence).toBe(first.item.sequence);
    expect(again.deliveries).toBe(2);
    expect(performance.now() - takenAt).toBeGreaterThan(LEASE_MS * 0.9);
  });

  test('leaves an item to a consumer that extends its lease', async () => {
    const other = await extendedInTime();
    expect(await other.next(LEASE_MS * 2, never)).toBeNull();
  });

  /**
   * The other consumer of an item whose lease was extended for twice its time, in which this one
   * waited for it; then the item was acknowledged. An attempt in which a paused machine did any of
   * that too late shows nothing and is made again.
   */
  async function extendedInTime() {
    for (;;) {
      const { inbox, other } = await work(1, opened);
      // Its lease begins before it is here.
      const extendedAt = [performance.now()];
      const delivery = await take(inbox);
      const extending = setInterval(() => {
        delivery.extendLease();
        extendedAt.push(performance.now());
      }, LEASE_MS / 5);
      const taken = await other.next(LEASE_MS * 2, never);
      clearInterval(extending);
      if (taken === null) await delivery.ack();
      const times = [...extendedAt, performance.now()];
      const gaps = times.map((at, index) => at - (times[index - 1] ?? at));
      if (Math.max(...gaps) > LEASE_MS / 2) continue;
      expect(taken).toBeNull();
      expect(extendedAt.length).toBeGreaterThan(6);
      return other;
    }
  }

  test('never delivers a dead letter again', async () => {
    const { inbox, other } = await work(2, opened);
    (await take(inbox)).deadLetter('cannot be done');
    await (await take(inbox)).ack();
    expect(await other.next(LEASE_MS * 2, never)).toBeNull();
  });

  test('delivers an item that is given back as often as it takes, if its deliveries have no bound', async () => {
    const name = freshId('inbox');
    const session = aSession();
    await appendOne(opened.eventStore, change(0, requested(session)));
    const inbox = await opened.openWorkQueue(name, [streamFilter(session)], { isBounded: false });
    for (let deliveries = 1; deliveries <= 15; deliveries += 1) {
      const delivery = await take(inbox);
      expect(delivery.deliveries).toBe(deliveries);
      delivery.retryAfter(0);
    }
    await (await take(inbox)).ack();
    expect(await inbox.next(LEASE_MS * 2, never)).toBeNull();
  });
}

/** A session with `count` events, and their work queue as each of two processes opens it. */
async function work(count: number, { eventStore, openWorkQueue, otherOpenWorkQueue }: OpenedLog) {
  const session = aSession();
  let sequence = 0;
  async function append() {
    const event = sequence === 0 ? requested(session) : accessed(session);
    return (sequence = await appendOne(eventStore, change(sequence, event)));
  }
  const sequences: number[] = [];
  for (let index = 0; index < count; index++) sequences.push(await append());
  const name = freshId('inbox');
  const subjects = [streamFilter(session)];
  const inbox = await openWorkQueue(name, subjects);
  const other = await otherOpenWorkQueue(name, subjects);
  return { session, sequences, append, inbox, other };
}

async function take(workQueue: WorkQueue<RecordedEvent>): Promise<Delivery<RecordedEvent>> {
  const delivery = await workQueue.next(SOON_MS, never);
  if (delivery === null) throw new Error(`nothing came within ${SOON_MS} ms`);
  return delivery;
}
