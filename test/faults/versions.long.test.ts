import { headers as newHeaders } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { headersOf } from '#events/codec.ts';
import {
  EVENTS_STREAM,
  filters,
  FIRED_SUBJECTS,
  PUBLIC_STREAM,
  subjectOf,
  TIMERS_STREAM,
} from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { newId } from '#src/kernel/ids.ts';
import { newAccountSeed } from '#src/features/nats-tenants/nkey.ts';
import { bss } from '#test/support/clients/command-line.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { startRedis } from '#test/support/servers/real-redis.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { openLog } from '#test/support/service/service-log.ts';
import { nextRelease, type Release } from '#test/support/service/releases.ts';
import {
  DEV_KEY,
  eventually,
  startService,
  type RunningService,
} from '#test/support/service/service.ts';

/**
 * Two releases side by side on one real NATS and one Redis, as in a rolling upgrade
 * (deploy/runbook.md). Each is a whole service with simulated browsers. Most of the time passes
 * until sessions expire, so the tests run at once.
 */

const PATIENCE_MS = 480_000;
/** Between two sessions of a client. */
const PAUSE_MS = 100;
const PLENTY = { max: { requests_per_minute: 1_000_000, concurrent_sessions: 1e5 } };

async function openStores() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const redis = stack.use(await startRedis());
  const env = {
    NATS_URL: nats.url,
    REDIS_URL: redis.url,
    MASTER_KEY: 'the-same-in-both-releases-of-the-service',
    NATS_ISSUER_SEED: newAccountSeed(),
    TIERS: JSON.stringify(PLENTY),
    POOL_MIN_IDLE: '2',
    POOL_MAX: '200',
  };
  const all = stack.move();
  return {
    start: (release?: Release) => startService(env, { main: release?.main }),
    connect: () => connectJetStream({ url: nats.url, name: 'test' }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Sessions through one API until its signal aborts: some expire, some are extended or stopped. */
function startLoad(service: RunningService) {
  const accepted: string[] = [];
  const failures: unknown[] = [];
  const over = new AbortController();
  async function one(turn: number): Promise<void> {
    const { status, body } = await service.request('POST', '/api/sessions', { duration: '1m' });
    if (status !== 201 && status !== 202) return void failures.push([status, body]);
    accepted.push(body.id);
    const path = `/api/sessions/${body.id}`;
    if (turn % 3 === 1) await service.request('POST', `${path}/extend`, { duration: '1m' });
    if (turn % 3 === 2) await service.request('DELETE', path);
  }
  async function run(): Promise<void> {
    for (let turn = 0; !over.signal.aborted; turn += 1) {
      await one(turn);
      // As many as a busy release gets: every one is looked at in the end.
      await sleep(PAUSE_MS);
    }
  }
  const running = run();
  return {
    accepted,
    failures,
    async until(count: number): Promise<void> {
      const enough = accepted.length + count;
      await eventually(() => accepted.length >= enough, `${count} more sessions are accepted`);
    },
    async end(): Promise<void> {
      over.abort();
      await running;
    },
  };
}

async function publishedCount({ jsm }: JetStreamConnection): Promise<number> {
  return (await jsm.streams.info(PUBLIC_STREAM)).state.messages;
}

/** Sequences of the events in PUBLIC, in its order. */
async function published(connection: JetStreamConnection): Promise<number[]> {
  const sequences: number[] = [];
  const count = await publishedCount(connection);
  if (count === 0) return sequences;
  const consumer = await connection.js.consumers.get(PUBLIC_STREAM, { headers_only: true });
  for await (const { headers } of await consumer.consume()) {
    sequences.push(Number(headers?.get('ce-sequence')));
    if (sequences.length === count) break;
  }
  return sequences;
}

/** Sequences of the organizations' events, whether this build can read them or not. */
async function organizationEvents(connection: JetStreamConnection): Promise<number[]> {
  const sequences: number[] = [];
  const subjects = filters.tenants;
  const range = { subjects, onUnreadable: (poison: { sequence: number }) => note(poison) };
  const note = ({ sequence }: { sequence: number }) => void sequences.push(sequence);
  for await (const batch of createJetStreamEventStore(connection).read(range)) batch.forEach(note);
  return sequences.toSorted((one, other) => one - other);
}

/** All events so far are published, each once and in order. Further ones may come meanwhile. */
async function untilPublished(connection: JetStreamConnection): Promise<void> {
  const { length } = await organizationEvents(connection);
  await eventually(
    async () => (await publishedCount(connection)) >= length,
    'all events are published',
  );
  const sequences = await published(connection);
  const events = await organizationEvents(connection);
  expect(sequences).toEqual(events.slice(0, sequences.length));
}

async function expectNoDeadLetters(service: RunningService): Promise<void> {
  const { code, stdout, stderr } = await bss(service, 'dead-letters', 'list', '--json');
  expect([code, JSON.parse(stdout), stderr]).toEqual([0, [], '']);
}

/** What must hold after both releases have worked. */
async function expectWhole(
  service: RunningService,
  connection: JetStreamConnection,
  accepted: readonly string[],
): Promise<void> {
  await using log = await openLog(service);
  const isOver = async () => (await log.ledger('dev'))?.slotsInUse === 0;
  await eventually(isOver, 'every session has ended', PATIENCE_MS);
  const { sessions } = await auditLog(service);
  const open = [...sessions.values()].filter(({ state }) => !isFinal(state.status));
  expect(open).toEqual([]);
  expect(accepted.filter((id) => !sessions.has(id))).toEqual([]);
  const ends = ['session.stopped', 'session.failed'];
  for (const { events } of sessions.values())
    expect(events.filter(({ type }) => ends.includes(type))).toHaveLength(1);
  await untilPublished(connection);
  await expectNoDeadLetters(service);
  for (const command of [
    ['projections', 'verify'],
    ['audit', 'ledger'],
  ])
    expect(await bss(service, ...command)).toMatchObject({ code: 0 });
}

/** Appends `session.noted` as the next release would. @returns its sequence */
async function note(connection: JetStreamConnection, id: string): Promise<number> {
  const aggregate = { kind: 'session', organizationId: 'dev', id } as const;
  const last = await createJetStreamEventStore(connection).readLast<'session'>(aggregate);
  const type = 'session.noted';
  const identity = { aggregate, type, id: newId('evt'), time: new Date().toISOString() };
  const headers = newHeaders();
  const data = { note: 'hello' };
  const attributes = headersOf({ ...identity, metadata: newMetadata('test') });
  for (const [name, value] of Object.entries(attributes)) headers.set(name, value);
  const body = { data, state: last?.state, stateVersion: 2 };
  const subject = subjectOf(aggregate, type);
  const { seq } = await connection.js.publish(subject, JSON.stringify(body), { headers });
  return seq;
}

async function newSession(service: RunningService, duration: string): Promise<string> {
  const { status, body } = await service.request('POST', '/api/sessions', { duration });
  expect([status, body]).toEqual([201, expect.objectContaining({ status: 'active' })]);
  return body.id as string;
}

/** The first reason for which the stream of the organization ends. */
async function endOfStream(service: RunningService, after: number): Promise<string> {
  const headers = { authorization: `Bearer ${DEV_KEY}`, 'last-event-id': String(after) };
  const stream = await fetch(`${service.apiUrl}/api/events`, { headers });
  return (await stream.text()).split('event: end').at(-1) ?? '';
}

async function statusAt(connection: JetStreamConnection, id: string): Promise<string> {
  const { jsm } = connection;
  const filter = `evt.dev.session.${id}.>`;
  const last = await jsm.streams.getMessage(EVENTS_STREAM, { last_by_subj: filter });
  const { state } = last?.json<{ state: { status: string; endedReason: string } }>() ?? {};
  return `${state?.status} ${state?.endedReason}`;
}

describe.concurrent('two releases', () => {
  // Nothing has been released: the release before this one is this one.
  test('a service that takes over beside one that leaves loses no session, timer or message', async () => {
    await using stores = await openStores();
    await using connection = await stores.connect();
    await using leaving = await stores.start();
    const loads = [startLoad(leaving)];
    await loads[0]?.until(20);
    await using staying = await stores.start();
    loads.push(startLoad(staying));
    for (const load of loads) await load.until(20);
    await loads[0]?.end();
    await leaving.end('SIGTERM');
    await loads[1]?.until(20);
    await loads[1]?.end();

    expect(loads.flatMap(({ failures }) => failures)).toEqual([]);
    const accepted = loads.flatMap((load) => load.accepted);
    await expectWhole(staying, connection, accepted);
    for (const { output } of [leaving, staying])
      expect(output()).not.toMatch(/overdue timer|lost timer/);
  });

  test('waits at what only the next release can read, and goes on behind it', async () => {
    await using next = await nextRelease();
    await using stores = await openStores();
    await using connection = await stores.connect();
    await using now = await stores.start();
    const [noted, other] = [await newSession(now, '1m'), await newSession(now, '1h')];
    await untilPublished(connection);
    const unknown = await note(connection, noted);
    // Only then is everything before it published.
    const said = (words: string) => eventually(() => now.output().includes(words), words);
    await said('publishing to tenants waits at');
    const before = await publishedCount(connection);

    // All processes are old: what is behind the event waits, and the session is left alone.
    expect((await now.request('DELETE', `/api/sessions/${other}`)).status).toBeLessThan(300);
    for (const [method, path] of [
      ['DELETE', `/api/sessions/${noted}`],
      ['POST', `/api/sessions/${noted}/extend`],
    ] as const) {
      const body = method === 'POST' ? { duration: '1m' } : undefined;
      const answer = await now.request(method, path, body);
      expect([method, answer.status, answer.body.message]).toEqual([
        method,
        503,
        expect.stringContaining('is being upgraded'),
      ]);
    }
    expect(await endOfStream(now, unknown - 1)).toContain('"reason":"newer_version"');
    await said('projection waits for a projector');
    const isDegraded = async () =>
      (await now.request('GET', '/api/health')).body.status !== 'healthy';
    await eventually(isDegraded, 'the lists are late');
    expect(await publishedCount(connection)).toBe(before);
    // Its timer has fired by now, and is given back.
    const firings = async () => (await stored(connection, FIRED_SUBJECTS)) > 0;
    await eventually(firings, 'the timer of the session has fired');
    expect(await statusAt(connection, noted)).toBe('active null');
    await expectNoDeadLetters(now);

    // The next release reads it, and this one goes on.
    await using newer = await stores.start(next);
    await untilPublished(connection);
    await eventually(
      async () => (await statusAt(connection, noted)).endsWith('expired'),
      'the timer was not lost',
    );
    const written = await newSession(newer, '1m');
    const own = await newSession(now, '1m');
    await eventually(async () => !(await isDegraded()), 'the lists are current');
    await now.end('SIGTERM');
    for (const id of [noted, other, written, own])
      await eventually(
        async () => /^(stopped|failed)/.test(await statusAt(connection, id)),
        `${id} has ended`,
        PATIENCE_MS,
      );
    await untilPublished(connection);
    await expectNoDeadLetters(newer);
  });
});

async function stored({ jsm }: JetStreamConnection, filter: string): Promise<number> {
  const { state } = await jsm.streams.info(TIMERS_STREAM, { subjects_filter: filter });
  return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
}
