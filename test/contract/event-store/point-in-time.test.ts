import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { filtersFor, sessionAnywhere, streamFilter } from '#events/subjects.ts';
import {
  sequenceBefore,
  sequenceByHalves,
} from '#src/kernel/event-store/jetstream/jetstream-time.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createJetStreamRawRecords } from '#src/kernel/event-store/jetstream/jetstream-raw-records.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { timeOfNanos } from '#src/kernel/event-store/jetstream/jetstream-reply.ts';
import { isBytes, rawRecordOf } from '#src/kernel/event-store/record-bytes.ts';
import type { RawRecord, RawRecords } from '#src/kernel/event-store/raw-records.ts';
import {
  aSession,
  change,
  ledgerOf,
  requested,
  slotReserved,
} from '#test/support/events.fixture.ts';
import { eventually } from '#test/support/service/service.ts';
import {
  appendEach,
  eventLogs,
  historyOf,
  openRealLog,
  type OpenedLog,
} from '#test/support/stores/event-stores.ts';

describe.each(eventLogs)('the past of the event store ($adapter)', ({ open }) => {
  let opened: OpenedLog;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('is the last event at or before each sequence', async () => {
    const { eventStore } = opened;
    const [session, other] = [aSession(), aSession()];
    const begin = await appendEach(eventStore, other, 2);
    const sequences = await appendEach(eventStore, session, 5);
    await appendEach(eventStore, aSession(), 2);
    const history = await historyOf(eventStore, session);
    for (const [index, sequence] of sequences.entries()) {
      expect(await eventStore.readLastUpTo(session, sequence)).toEqual(history[index]);
      expect(await eventStore.readLastUpTo(session, sequence - 1)).toEqual(
        history[index - 1] ?? null,
      );
    }
    expect(await eventStore.readLastUpTo(session, await eventStore.lastSequence())).toEqual(
      history.at(-1),
    );
    expect(await eventStore.readLastUpTo(session, begin.at(-1) ?? 0)).toBeNull();
    expect(await eventStore.readLastUpTo(session, 0)).toBeNull();
    expect(await eventStore.readLastUpTo(aSession(), 1_000_000)).toBeNull();
  });

  test('keeps the events of an organization’s subjects apart', async () => {
    const session = aSession();
    const changes = [change(0, requested(session)), change(0, slotReserved(session))];
    await opened.eventStore.append(changes.slice(0, 1));
    await opened.eventStore.append(changes.slice(1));
    const upTo = await opened.eventStore.lastSequence();
    expect((await opened.eventStore.readLastUpTo(ledgerOf(session), upTo))?.type).toBe(
      'ledger.slot-reserved',
    );
    expect(await opened.eventStore.readLastUpTo(ledgerOf(session), upTo - 1)).toBeNull();
    const { state, sequence } = await loadState<'session'>(opened.eventStore, session, {
      upTo: upTo,
    });
    expect([state?.status, sequence]).toEqual(['creating', upTo - 1]);
  });

  test('is read in ranges that end at their last event', async () => {
    const { eventStore } = opened;
    const session = aSession();
    const sequences = await appendEach(eventStore, session, 6);
    await appendEach(eventStore, aSession(), 1);
    const subjects = filtersFor(session.organizationId, null);
    const read = async (after: number, upTo: number) => {
      const found: number[] = [];
      const range = { subjects, after, upTo, batchMax: 2, onUnreadable: fail };
      for await (const batch of eventStore.read(range))
        found.push(...batch.map(({ sequence }) => sequence));
      return found;
    };
    const [first = 0, last = 0] = [sequences[0], sequences.at(-1)];
    expect(await read(0, Infinity)).toEqual(sequences);
    expect(await read(first, last)).toEqual(sequences.slice(1));
    expect(await read(0, last - 1)).toEqual(sequences.slice(0, -1));
    expect(await read(0, first - 1)).toEqual([]);
    expect(await read(last, last + 1)).toEqual([]);
    expect(await read(last, first)).toEqual([]);
  });
});

test('a range ends although its last match is far from the end', { timeout: 60_000 }, async () => {
  await using opened = await openRealLog();
  const { eventStore } = opened;
  const session = aSession();
  const sequences = await appendEach(eventStore, session, 2);
  await appendEach(eventStore, aSession(), 1_100);
  const found: number[] = [];
  const range = { subjects: [streamFilter(session)], onUnreadable: fail };
  for await (const batch of eventStore.read(range))
    found.push(...batch.map(({ sequence }) => sequence));
  expect(found).toEqual(sequences);
});

describe('the raw records', () => {
  it('are the stored messages, of one organization or of all', async () => {
    await using opened = await openRealLog();
    const { eventStore, connection } = opened;
    const session = aSession();
    await appendEach(eventStore, session, 3);
    await appendEach(eventStore, aSession(), 620);
    await appendEach(eventStore, aSession(session.organizationId), 2);
    const upTo = await eventStore.lastSequence();
    const records = createJetStreamRawRecords(connection);

    const all = await recordsOf(records, 0, upTo, null);
    expect(all.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: upTo }, (_, at) => at + 1),
    );
    const own = await recordsOf(records, 0, upTo, session.organizationId);
    expect(own.map(({ sequence }) => sequence)).toEqual([1, 2, 3, upTo - 1, upTo]);
    expect((await recordsOf(records, 1, 3, session.organizationId)).length).toBe(2);
    expect(await recordsOf(records, 3, 600, session.organizationId)).toEqual([]);
    const filtered: RawRecord[] = [];
    const range = { after: 1, upTo, filter: sessionAnywhere(session.id) };
    for await (const batch of records.read(range)) filtered.push(...batch);
    expect(filtered).toEqual(own.slice(1, 3));
    const [first] = await historyOf(eventStore, session);
    expect(JSON.parse(own[0]?.body ?? '')).toMatchObject({
      data: first?.data,
      state: first?.state,
    });
    expect(own[0]?.headers).toContainEqual(['ce-id', first?.id]);
  });

  it('are the same by one message, by many, and as bytes', async () => {
    await using opened = await openRealLog();
    const { eventStore, connection } = opened;
    await appendEach(eventStore, aSession(), 1_200);
    const records = createJetStreamRawRecords(connection);
    const many = await recordsOf(records, 0, 1_200, null);
    expect(many.length).toBe(1_200);
    const bytes = (await Array.fromAsync(records.readAll({ after: 0, upTo: 1_200 }))).flat();
    expect(bytes.map((record) => (isBytes(record) ? rawRecordOf(record) : record))).toEqual(many);
    // A direct get has the time of storage as the server writes it.
    for (let after = 0; after < 1_200; after += 400)
      expect(await recordsOf(records, after, after + 400, null)).toEqual(
        many.slice(after, after + 400),
      );
  });

  it('end where they are to end, though more follow, and are refused before they are all stored', async () => {
    await using opened = await openRealLog();
    const { eventStore, connection } = opened;
    await appendEach(eventStore, aSession(), 1_200);
    const records = createJetStreamRawRecords(connection);
    const part = await recordsOf(records, 50, 1_100, null);
    expect(part.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: 1_050 }, (_, at) => at + 51),
    );
    await expect(recordsOf(records, 0, 1_300, null)).rejects.toThrow(Unavailable);
  });
});

describe('a time that the server writes', () => {
  it.each([
    ['1780000000708849705', '2026-05-28T20:26:40.708849705Z'],
    ['1780000000700000000', '2026-05-28T20:26:40.7Z'],
    ['1780000000000000000', '2026-05-28T20:26:40Z'],
    ['1780000001000000010', '2026-05-28T20:26:41.00000001Z'],
  ])('%s ns is %s', (nanos, time) => {
    expect(timeOfNanos(nanos)).toBe(time);
  });
});

test('a binary search on an older server, which cannot be asked by time, finds the same sequences', async () => {
  await using real = await openRealLog();
  const { eventStore, connection } = real;
  const times = [new Date(0).toISOString()];
  for (let n = 0; n < 8; n += 1) {
    const [sequence = 0] = await appendEach(eventStore, aSession(), 1);
    const stored = await connection.jsm.streams.getMessage('EVENTS', { seq: sequence });
    const at = stored?.time.getTime() ?? 0;
    times.push(new Date(at).toISOString(), new Date(at + 1).toISOString());
    // The next event is stored in another millisecond.
    await eventually(() => Date.now() > at, 'it is later');
  }
  const found = await Promise.all(times.map((time) => sequenceBefore(connection, time)));
  expect(found[0]).toBe(0);
  expect(found.at(-1)).toBe(await eventStore.lastSequence());
  expect(new Set(found).size).toBe(9);
  for (const [index, time] of times.entries())
    expect(await sequenceByHalves(connection, time)).toBe(found[index]);
});

async function recordsOf(
  records: RawRecords,
  after: number,
  upTo: number,
  organizationId: string | null,
): Promise<RawRecord[]> {
  const found: RawRecord[] = [];
  for await (const batch of records.read({ after, upTo, organizationId })) found.push(...batch);
  return found;
}

function fail({ reason }: { reason: string }): never {
  throw new Error(reason);
}
