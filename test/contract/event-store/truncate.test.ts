import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { headers } from '@nats-io/transport-node';
import { filters, streamFilter } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import {
  sequenceBefore,
  sequenceByHalves,
} from '#src/kernel/event-store/jetstream/jetstream-time.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createJetStreamRawRecords } from '#src/kernel/event-store/jetstream/jetstream-raw-records.ts';
import { createJetStreamTruncation } from '#src/kernel/event-store/jetstream/jetstream-truncation.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import type { LogTruncation } from '#src/kernel/event-store/truncation.ts';
import { accessed, aSession, change, requested } from '#test/support/events.fixture.ts';
import { startNatsWithRoles } from '#test/support/servers/nats-roles.ts';
import { eventually } from '#test/support/service/service.ts';
import {
  appendEach,
  appendOne,
  followed,
  historyOf,
  openRealLog,
  type RealLog,
} from '#test/support/stores/event-stores.ts';

let real: RealLog;
let truncation: LogTruncation;
/** Ended before the border, lives on both sides of it, began after it. */
let [old, both, late] = [aSession(), aSession(), aSession()];
/** The last sequence that is removed. */
const BORDER = 6;
/** Fewer than are removed. */
const PURGE_STEP = 4;

beforeEach(async () => {
  real = await openRealLog();
  truncation = createJetStreamTruncation(real.connection, PURGE_STEP);
  [old, both, late] = [aSession(), aSession(), aSession()];
  const { eventStore } = real;
  await appendEach(eventStore, old, 4);
  await appendEach(eventStore, both, 2);
  for (const minute of [2, 3])
    await appendOne(eventStore, change(BORDER + minute - 2, accessed(both, minute)));
  await appendEach(eventStore, late, 3);
});
afterEach(() => real[Symbol.asyncDispose]());

const sequencesOf = (events: readonly { sequence: number }[]) => events.map((one) => one.sequence);

describe('a truncated event store', () => {
  test('was purged in steps, so that an append never waits for all of it', async () => {
    const asked: unknown[] = [];
    real.connection.nc.subscribe('$JS.API.STREAM.PURGE.EVENTS', {
      callback: (_, message) => void asked.push(message.json()),
    });
    await truncation.truncate(BORDER);
    // A request may arrive here after its answer.
    await real.connection.nc.flush();
    expect(asked).toEqual([{ seq: 5 }, { seq: 7 }]);
    expect((await real.eventStore.info()).firstSequence).toBe(7);
  });

  test('has its newest events under their sequences, and reads begin at the first of them', async () => {
    const { eventStore, connection } = real;
    const before = await eventStore.info();
    expect(before).toMatchObject({ firstSequence: 1, lastSequence: 11 });
    await truncation.truncate(BORDER);
    await truncation.truncate(BORDER);
    await truncation.truncate(2);
    await truncation.truncate(0);
    expect(await eventStore.info()).toEqual({ ...before, firstSequence: 7 });
    expect(await eventStore.lastSequence()).toBe(11);

    const read = async (range: { after?: number; upTo?: number; subjects?: string[] }) => {
      const found: number[] = [];
      const all = { subjects: filters.all, onUnreadable: fail, ...range };
      for await (const batch of eventStore.read(all)) found.push(...sequencesOf(batch));
      return found;
    };
    expect(await read({})).toEqual([7, 8, 9, 10, 11]);
    expect(await read({ after: 3, upTo: 8 })).toEqual([7, 8]);
    expect(await read({ after: 1, upTo: 5 })).toEqual([]);
    expect(await read({ subjects: [streamFilter(old)] })).toEqual([]);
    expect(await read({ subjects: [streamFilter(both)] })).toEqual([7, 8]);
    for (const after of [0, 3, BORDER]) {
      const batches = await followed(eventStore, { subjects: filters.all, after }, 5);
      expect(sequencesOf(batches.flat())).toEqual([7, 8, 9, 10, 11]);
    }
    const own = { subjects: [streamFilter(both)], after: 0 };
    expect(sequencesOf((await followed(eventStore, own, 2)).flat())).toEqual([7, 8]);

    const raw: number[] = [];
    const records = createJetStreamRawRecords(connection);
    for await (const batch of records.read({ after: 0, upTo: 11, organizationId: null }))
      raw.push(...sequencesOf(batch));
    for await (const batch of records.read({ after: 2, upTo: 5, organizationId: null }))
      raw.push(...sequencesOf(batch));
    for await (const batch of records.read({ after: 0, upTo: 11, filter: streamFilter(both) }))
      raw.push(...sequencesOf(batch));
    expect(raw).toEqual([7, 8, 9, 10, 11, 7, 8]);
  });

  test('has no aggregate whose events are all gone, and the others at each moment that is left', async () => {
    const { eventStore } = real;
    await truncation.truncate(BORDER);
    expect(await eventStore.readLast(old)).toBeNull();
    expect(await historyOf(eventStore, old)).toEqual([]);
    expect(await loadState<'session'>(eventStore, old)).toEqual({ state: null, sequence: 0 });
    expect(sequencesOf(await historyOf(eventStore, both))).toEqual([7, 8]);
    expect(await loadState<'session'>(eventStore, both)).toMatchObject({ sequence: 8 });
    expect((await eventStore.readLastUpTo(both, 7))?.sequence).toBe(7);
    expect((await eventStore.readLastUpTo(both, 11))?.sequence).toBe(8);
    for (const sequence of [1, BORDER])
      for (const session of [old, both])
        expect(await eventStore.readLastUpTo(session, sequence)).toBeNull();
  });

  test('appends with the optimistic check to aggregates on both sides of the border', async () => {
    const { eventStore } = real;
    await truncation.truncate(BORDER);
    const append = async (...of: Parameters<typeof change>) =>
      (await eventStore.append([change(...of)])).outcome;
    expect(await append(7, accessed(both, 9))).toBe('conflict');
    expect(await append(0, accessed(both, 9))).toBe('conflict');
    expect(await append(8, accessed(both, 9))).toBe('appended');
    expect(await append(10, accessed(late, 9))).toBe('conflict');
    expect(await append(11, accessed(late, 9))).toBe('appended');
    // It does not exist any more: as one that never did.
    expect(await append(4, accessed(old, 9))).toBe('conflict');
    expect(await append(0, requested(old))).toBe('appended');
    expect(sequencesOf(await historyOf(eventStore, old))).toEqual([14]);
  });

  test('answers a time before the border with the sequence before its first event', async () => {
    const { eventStore, connection } = real;
    const timeOf = async (seq: number) =>
      (await connection.jsm.streams.getMessage('EVENTS', { seq }))?.time.getTime() ?? 0;
    const early = new Date((await timeOf(3)) + 1).toISOString();
    const lastTime = await timeOf(11);
    await truncation.truncate(BORDER);
    for (const before of [sequenceBefore, sequenceByHalves]) {
      expect(await before(connection, new Date(0).toISOString())).toBe(BORDER);
      expect(await before(connection, new Date(lastTime + 1).toISOString())).toBe(11);
      const found = await before(connection, early);
      expect(found).toBe(await sequenceBefore(connection, early));
      expect(found).toBeGreaterThanOrEqual(BORDER);
    }
    expect(await eventStore.sequenceBefore(new Date(0).toISOString())).toBe(BORDER);
  });

  test('is the same after a restart of nats-server', async () => {
    const { eventStore, nats } = real;
    await truncation.truncate(BORDER);
    const before = await eventStore.info();
    await nats.kill();
    await nats.restart();
    const isBack = () => eventStore.info().catch(() => null);
    expect(await eventually(isBack, 'it answers', 30_000)).toEqual(before);
    expect(sequencesOf(await historyOf(eventStore, both))).toEqual([7, 8]);
    const next = change(8, accessed(both, 9));
    expect(await eventStore.append([next])).toEqual({ outcome: 'appended', sequences: [12] });
  });

  test('keeps its newest event', async () => {
    for (const upTo of [11, 12, Infinity])
      await expect(truncation.truncate(upTo)).rejects.toThrow(RangeError);
    expect(await real.eventStore.info()).toMatchObject({ firstSequence: 1 });
    await truncation.truncate(10);
    expect(await real.eventStore.info()).toMatchObject({ firstSequence: 11, lastSequence: 11 });
    expect(await real.eventStore.sequenceBefore(new Date(0).toISOString())).toBe(10);
  });

  test('goes on delivering to a subscriber that was there before', async () => {
    const { eventStore } = real;
    const stop = new AbortController();
    const options = { subjects: filters.all, after: 8, signal: stop.signal, onUnreadable: fail };
    const found: number[] = [];
    let isCut = false;
    for await (const batch of eventStore.subscribe(options)) {
      found.push(...sequencesOf(batch));
      if (found.length < 3) continue;
      if (isCut) break;
      isCut = true;
      await truncation.truncate(10);
      await appendOne(eventStore, change(11, accessed(late, 9)));
    }
    stop.abort();
    expect(found).toEqual([9, 10, 11, 12]);
  });
});

describe('what organizations read', () => {
  /** Publishes as the publisher does: the sequences of the events, with gaps. */
  async function publish(...events: number[]): Promise<void> {
    for (const event of events) {
      const named = headers();
      named.set('ce-sequence', String(event));
      await real.connection.js.publish('pub.acme.session.s.accessed', '{}', { headers: named });
    }
  }
  const firstOf = async (stream: string) =>
    (await real.connection.jsm.streams.info(stream)).state.first_seq;

  test('is truncated at the same event, without its newest message', async () => {
    await truncation.truncatePublic(5);
    await publish(1, 2, 5, 9, 10);
    const firsts: number[] = [];
    for (const upTo of [0, 1, 4, 5, 5, 8, 2, 9, 100]) {
      await truncation.truncatePublic(upTo);
      firsts.push(await firstOf('PUBLIC'));
    }
    expect(firsts).toEqual([1, 2, 3, 4, 4, 4, 4, 5, 5]);
    expect((await real.connection.jsm.streams.info('PUBLIC')).state.last_seq).toBe(5);
  });

  test('holds the event store back where the publisher has come to', async () => {
    expect(await truncation.heldBackTo()).toBeNull();
    await publish(3, 7);
    expect(await truncation.heldBackTo()).toEqual({ sequence: 7, by: 'PUBLIC' });
    await publish(11);
    expect(await truncation.heldBackTo()).toBeNull();
  });
});

test('a work queue holds the event store back to the first event it has not finished', async () => {
  const { openWorkQueue, eventStore } = real;
  const queue = await openWorkQueue('workers', filters.sessions);
  expect(await truncation.heldBackTo()).toEqual({ sequence: 0, by: 'workers' });
  const { signal } = new AbortController();
  const take = async () => (await queue.next(60_000, signal)) ?? expect.fail('nothing is left');
  const [first, second] = [await take(), await take()];
  await second.ack();
  expect(await truncation.heldBackTo()).toMatchObject({ sequence: 0 });
  await first.ack();
  const isAt = (sequence: number) => async () =>
    (await truncation.heldBackTo())?.sequence === sequence;
  await eventually(isAt(2), 'two are finished');
  // A reader of the whole store is not durable, and does not hold it back.
  await followed(eventStore, { subjects: filters.all, after: 0 }, 1);
  for (let left = 9; left > 0; left -= 1) await (await take()).ack();
  await eventually(async () => (await truncation.heldBackTo()) === null, 'all are finished');
});

test('the archivist’s NATS user may truncate, and is the only one', async () => {
  await using nats = await startNatsWithRoles();
  await using api = await connectJetStream({ url: nats.urlOf('api') });
  const eventStore = createJetStreamEventStore(api);
  await appendEach(eventStore, aSession(), 1);
  await appendEach(eventStore, aSession(), 1);
  await expect(createJetStreamTruncation(api).truncate(1)).rejects.toThrow(/Permissions/);
  await using own = await connectJetStream({ url: nats.urlOf('archivist'), makesStreams: false });
  const archivist = createJetStreamTruncation(own);
  expect(await archivist.heldBackTo()).toBeNull();
  await archivist.truncate(1);
  await archivist.truncatePublic(1);
  expect(await createJetStreamEventStore(own).info()).toMatchObject({ firstSequence: 2 });
  expect(nats.violations().filter((line) => line.includes('archivist'))).toEqual([]);
});

function fail({ reason }: { reason: string }): never {
  throw new Error(reason);
}
