import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TimeoutError } from '@nats-io/transport-node';
import { EVENTS_STREAM, filters, filtersFor, sessionAnywhere } from '#events/subjects.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { readArrivals } from '#src/kernel/event-store/jetstream/read.ts';
import { isServerFilter, openReader } from '#src/kernel/event-store/jetstream/ordered-consumer.ts';
import { aSession, change, slotReserved } from '#test/support/events.fixture.ts';
import {
  appendEach,
  appendOne,
  followed,
  openRealLog,
  type RealLog,
} from '#test/support/stores/event-stores.ts';

/**
 * nats-server counts what a filter matches when a consumer is made: a second for a million
 * subjects, in which it stores no event.
 */
describe('subjects of all sessions or all workloads are no filter for the server', () => {
  const { all, tenants, fleet, sessions, workloads } = filters;
  test.each([
    ...[all, tenants, fleet, sessions, workloads, filters.sessionRequests, filters.sessionTimers],
    filters.ledgersAndSessions,
    filtersFor(null, 'session.stopped'),
    filtersFor(null, 'workload.running'),
    ['>'],
    ['evt.*.*.*.stopped'],
    ['*.>'],
  ])('%s', (...subjects) => {
    expect(isServerFilter(subjects)).toBe(false);
  });

  test.each([
    ...[filters.organizations, filters.servers, filters.serverLives],
    ...[filtersFor('acme', null), filtersFor('acme', 'session.stopped')],
    filtersFor(null, 'ledger.settled'),
    [sessionAnywhere('ses_1')],
    ['fleet.workload.wl_1.>'],
  ])('others are: %s', (...subjects) => {
    expect(isServerFilter(subjects)).toBe(true);
  });
});

describe('a reader of all sessions', () => {
  let opened: RealLog;
  beforeAll(async () => {
    opened = await openRealLog();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('opens a consumer without a filter', async () => {
    const { connection } = opened;
    const stop = new AbortController();
    const place = { after: 0, batchMax: 10, signal: stop.signal };
    const own = filtersFor('acme', null);
    await using ofSessions = await openReader(connection, { ...place, subjects: filters.sessions });
    await using ofAcme = await openReader(connection, { ...place, subjects: own });
    expect([ofSessions.pendingAtStart, ofAcme.pendingAtStart]).toEqual([0, 0]);
    const found = await Array.fromAsync(connection.jsm.consumers.list(EVENTS_STREAM));
    const wanted = found.map(({ config }) => config.filter_subjects?.[0] ?? config.filter_subject);
    expect(wanted.toSorted()).toEqual([own[0], undefined].toSorted());
    stop.abort();
  });

  test('asks for its consumer again if the server takes long, and gets the one that was made', async () => {
    const { jsm } = opened.connection;
    const names = new Set<string>();
    let lost = 0;
    const add: typeof jsm.consumers.add = async (stream, config) => {
      const added = await jsm.consumers.add(stream, config);
      names.add(added.name);
      lost += 1;
      if (lost <= 2) throw new TimeoutError();
      return added;
    };
    const consumers = Object.assign(Object.create(jsm.consumers), { add });
    const connection = {
      ...opened.connection,
      jsm: Object.assign(Object.create(jsm), { consumers }),
    };
    const [sequence] = await appendEach(opened.eventStore, aSession('acme'), 1);
    const { signal } = new AbortController();
    const place = { after: (sequence ?? 0) - 1, batchMax: 10, signal };
    await using reader = await openReader(connection, {
      ...place,
      subjects: filtersFor('acme', null),
    });
    expect([names.size, lost, reader.pendingAtStart]).toEqual([1, 3, 1]);
    expect((await reader.take(10)).map((one) => one.sequence)).toEqual([sequence]);
  });

  test('gives up if each of its consumers is gone as soon as it is made', async () => {
    const { jsm } = opened.connection;
    let made = 0;
    const add: typeof jsm.consumers.add = async (stream, config) => {
      const added = await jsm.consumers.add(stream, config);
      await jsm.consumers.delete(stream, added.name);
      made += 1;
      return added;
    };
    const consumers = Object.assign(Object.create(jsm.consumers), { add });
    const gone = { ...opened.connection, jsm: Object.assign(Object.create(jsm), { consumers }) };
    const [sequence = 0] = await appendEach(opened.eventStore, aSession('acme'), 1);
    const range = { subjects: filters.all };
    const reading = Array.fromAsync(readArrivals(gone, range, { sequence: 0 }, sequence));
    await expect(reading).rejects.toThrow(Unavailable);
    expect(made).toBeGreaterThan(1);
  });

  test('gets events of sessions alone, and knows the position behind all others', async () => {
    const { eventStore } = opened;
    const before = await eventStore.lastSequence();
    const sessions = await appendEach(eventStore, aSession(), 3);
    await appendOne(eventStore, change(0, slotReserved(aSession())));
    const later = await appendEach(eventStore, aSession(), 2);
    const options = { subjects: filters.sessions, after: before };
    const received = (await followed(eventStore, options, 5)).flat();
    expect(received.map(({ sequence }) => sequence)).toEqual([...sessions, ...later]);
    const read = eventStore.read({ ...options, onUnreadable: () => undefined });
    expect((await Array.fromAsync(read)).flat()).toEqual(received);
  });
});
