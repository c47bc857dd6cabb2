import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADVISORY_STREAM, firedSubject, TIMERS_STREAM, type TimerKind } from '#events/subjects.ts';
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/event-store/jetstream/connection.ts';
import type { Delivery, WorkQueue } from '#src/messaging/work-queue.ts';
import { createJetStreamDeadLetters } from '#src/messaging/jetstream/jetstream-dead-letters.ts';
import { createJetStreamTimers } from '#src/messaging/jetstream/jetstream-timers.ts';
import { createMemoryTimers } from '#src/messaging/timers.memory.ts';
import type { FiredTimer, Timer, Timers } from '#src/messaging/timers.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { elsewhere, natsServers, type Server } from '#test/support/servers/containers.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';

type OpenedTimers = AsyncDisposable & {
  timers: Timers;
  /** The adapter's clock. */
  now(): number;
  /** Advances a clock that does not advance by itself. */
  pass(untilMs: number): void;
};

const never = new AbortController().signal;
const SOON_MS = 10_000;

describe.each([
  ...elsewhere([{ adapter: 'memory', open: openMemoryTimers }]),
  ...natsServers.map(({ where, start }) => ({
    adapter: `JetStream in a ${where}`,
    open: async () => openRealTimers(await start()),
  })),
])('timers ($adapter)', ({ open }) => {
  let opened: OpenedTimers;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  function schedule(timer: Timer, inMs: number): Promise<void> {
    return opened.timers.schedule(timer, new Date(opened.now() + inMs));
  }

  /**
   * The firings for the organizations of the timers, in order, up to and including the last one.
   */
  async function firedUpTo(last: Timer, inMs: number): Promise<Timer[]> {
    opened.pass(opened.now() + inMs);
    const inbox = await opened.timers.fired(freshId('inbox'));
    const fired: Timer[] = [];
    while (fired.at(-1)?.organizationId !== last.organizationId) {
      const delivery = await take(inbox);
      await delivery.ack();
      const { organizationId, sessionId, kind } = delivery.item;
      fired.push({ organizationId, sessionId, kind });
    }
    return fired;
  }

  test('fire once when they are due, and not before', async () => {
    const inbox = await opened.timers.fired(freshId('inbox'));
    const [timer, later] = [aTimer(), aTimer()];
    const due = opened.now() + 300;
    // So far apart that a pause of the machine changes no order.
    await schedule(timer, 300);
    await schedule(later, 1_300);
    opened.pass(due);
    const delivery = await takeOf(inbox, timer);
    expect(delivery.item).toMatchObject(timer);
    expect(opened.now()).toBeGreaterThanOrEqual(due);
    expect(delivery.item.firedAt).toBeGreaterThanOrEqual(due);
    expect(delivery.item.firedAt).toBeLessThanOrEqual(opened.now());
    await delivery.ack();
    opened.pass(due + 1_000);
    const next = await take(inbox);
    expect(next.item).toMatchObject(later);
  });

  test('fire at once when their time has passed', async () => {
    const timer = aTimer();
    await schedule(timer, -60_000);
    expect(await firedUpTo(timer, 0)).toContainEqual(timer);
  });

  test('move when they are scheduled again', async () => {
    const [moved, between, last] = [aTimer(), aTimer(), aTimer()];
    // The times are so far apart that a pause of the machine changes no order.
    await schedule(moved, 1_500);
    await schedule(moved, 3_500);
    await schedule(between, 2_500);
    await schedule(last, 4_500);
    const fired = await firedUpTo(last, 4_500);
    const ours = fired.filter((timer) => [moved, between, last].some((one) => isSame(one, timer)));
    expect(ours).toEqual([between, moved, last]);
  });

  test('of one session are independent, and removed together when cancelled', async () => {
    const expiry = aTimer('expiry');
    const warning: Timer = { ...expiry, kind: 'expiry-warning' };
    const [kept, last] = [aTimer('expiry'), aTimer('idle')];
    const idle: Timer = { ...kept, kind: 'idle' };
    // None fires before the cancellation.
    for (const timer of [expiry, warning, kept, idle]) await schedule(timer, 2_000);
    await schedule(last, 3_000);
    await opened.timers.cancel(expiry.organizationId, expiry.sessionId);
    const fired = await firedUpTo(last, 3_000);
    expect(fired).toContainEqual(kept);
    expect(fired).toContainEqual(idle);
    expect(fired).not.toContainEqual(expiry);
    expect(fired).not.toContainEqual(warning);
  });

  test('are listed by organization until they fire or are cancelled', async () => {
    const [due, later] = [aTimer(), aTimer('idle')];
    const cancelled = { ...later, sessionId: freshId('session') };
    const never = { ...later, kind: 'expiry' } as const;
    await schedule(due, -1);
    await schedule(later, 60_000);
    await schedule(cancelled, 60_000);
    await opened.timers.cancel(cancelled.organizationId, cancelled.sessionId);
    expect(await firedUpTo(due, 0)).toContainEqual(due);
    const scheduled = await opened.timers.scheduled(later.organizationId);
    expect([later, cancelled, never].map((timer) => scheduled.has(timer))).toEqual([
      true,
      false,
      false,
    ]);
    expect((await opened.timers.scheduled(due.organizationId)).has(due)).toBe(false);
  });

  test('may be cancelled if there are none', async () => {
    await opened.timers.cancel(freshId('org'), freshId('session'));
  });

  test('are delivered again when their consumer asks for a retry', async () => {
    const inbox = await opened.timers.fired(freshId('inbox'));
    const timer = aTimer();
    await schedule(timer, -1);
    (await takeOf(inbox, timer)).retryAfter(100);
    opened.pass(opened.now() + 100);
    const again = await takeOf(inbox, timer);
    expect(again.deliveries).toBe(2);
  });
});

describe('timers (JetStream) that fired while no timekeeper ran', () => {
  let nats: RealNats;
  beforeAll(async () => {
    nats = await startNats();
  });
  afterAll(() => nats[Symbol.asyncDispose]());

  async function away(timer: Timer): Promise<void> {
    await using connection = await connectJetStream({ url: nats.url });
    const timers = createJetStreamTimers(connection);
    await timers.fired('timekeeper');
    await timers.schedule(timer, new Date());
  }
  async function heldBy(connection: JetStreamConnection): Promise<string[]> {
    const { state } = await connection.jsm.streams.info(TIMERS_STREAM, { subjects_filter: '>' });
    return Object.keys(state.subjects ?? {});
  }

  test('are kept without a time limit, and removed once they are acknowledged', async () => {
    const timer = aTimer();
    await away(timer);
    await using connection = await connectJetStream({ url: nats.url });
    const { jsm } = connection;
    const subject = firedSubject(timer.organizationId, timer.sessionId, timer.kind);
    await expect.poll(() => heldBy(connection), { timeout: SOON_MS }).toEqual([subject]);
    const fired = await jsm.streams.getMessage(TIMERS_STREAM, { last_by_subj: subject });
    expect(fired?.header.get('Nats-TTL')).toBe('');
    // The durable consumer waits for its timekeeper without a time limit, too.
    const { config } = await jsm.consumers.info(TIMERS_STREAM, 'timekeeper');
    expect(config.inactive_threshold ?? 0).toBe(0);
    const inbox = await createJetStreamTimers(connection).fired('timekeeper');
    const delivery = await take(inbox);
    expect(delivery.item).toMatchObject(timer);
    expect(await heldBy(connection)).toEqual([subject]);
    await delivery.ack();
    expect(await heldBy(connection)).toEqual([]);
  });

  test('are delivered again and then removed, if their timekeeper dies while handling one', async () => {
    const timer = aTimer();
    await away(timer);
    {
      await using connection = await connectJetStream({ url: nats.url });
      await take(await createJetStreamTimers(connection, { leaseMs: 500 }).fired('timekeeper'));
    }
    await using connection = await connectJetStream({ url: nats.url });
    const inbox = await createJetStreamTimers(connection, { leaseMs: 500 }).fired('timekeeper');
    const again = await take(inbox);
    expect([again.item, again.deliveries]).toMatchObject([timer, 2]);
    await again.ack();
    expect(await heldBy(connection)).toEqual([]);
    // The server's advisories of items that were given up: none.
    expect((await connection.jsm.streams.info(ADVISORY_STREAM)).state.messages).toBe(0);
  });

  test('are kept while they are dead letters, and removed once a retry has handled them', async () => {
    const timer = aTimer();
    await away(timer);
    await using connection = await connectJetStream({ url: nats.url });
    const deadLetters = createJetStreamDeadLetters(connection);
    const inbox = await createJetStreamTimers(connection).fired('timekeeper');
    (await take(inbox)).deadLetter('a bug');
    await expect.poll(() => deadLetters.list(), { timeout: SOON_MS }).toHaveLength(1);
    const [event] = await deadLetters.list();
    if (event === undefined) throw new Error('nothing is parked');
    expect(await heldBy(connection)).toHaveLength(1);
    const retried = deadLetters.redeliver(event);
    const again = await take(inbox);
    expect(again.item).toMatchObject(timer);
    await again.ack();
    expect(await retried).toEqual({ outcome: 'mended' });
    expect(await heldBy(connection)).toEqual([]);
  });

  test('are removed, but not a later firing of the same timer', async () => {
    const timer = aTimer();
    await away(timer);
    await using connection = await connectJetStream({ url: nats.url });
    const timers = createJetStreamTimers(connection);
    const inbox = await timers.fired('timekeeper');
    const first = await take(inbox);
    await timers.schedule(timer, new Date());
    const second = await take(inbox);
    await first.ack();
    expect(await heldBy(connection)).toHaveLength(1);
    await second.ack();
    expect(await heldBy(connection)).toEqual([]);
  });
});

describe('timers (JetStream) across a kill of the server', () => {
  let nats: RealNats;
  beforeAll(async () => {
    nats = await startNats();
  });
  afterAll(() => nats[Symbol.asyncDispose]());

  test('stay scheduled, and those that became due meanwhile fire', async () => {
    await using connection = await connectJetStream({ url: nats.url });
    const timers = createJetStreamTimers(connection);
    const inbox = await timers.fired('timekeeper');
    const [overdue, cancelled, later] = [aTimer(), aTimer(), aTimer()];
    const dueAt = Date.now() + 2_000;
    await timers.schedule(overdue, new Date(dueAt));
    await timers.schedule(cancelled, new Date(dueAt));
    await timers.schedule(later, new Date(dueAt + 1_500));
    await timers.cancel(cancelled.organizationId, cancelled.sessionId);
    await nats.kill();
    await expect.poll(() => Date.now(), { timeout: SOON_MS }).toBeGreaterThan(dueAt);
    await nats.restart();
    // In any order, if the start took so long that both are due.
    const fired = new Set<string>();
    while (fired.size < 2) {
      const delivery = await take(inbox, 15_000);
      fired.add(delivery.item.sessionId);
      await delivery.ack();
    }
    expect(fired).toEqual(new Set([overdue.sessionId, later.sessionId]));
  });
});

async function openMemoryTimers(): Promise<OpenedTimers> {
  let now = Date.now();
  const timers = createMemoryTimers({ now: () => now });
  return {
    timers,
    now: () => now,
    pass(untilMs) {
      now = Math.max(now, untilMs);
      timers.fireDue();
    },
    async [Symbol.asyncDispose]() {},
  };
}

async function openRealTimers(server: Server): Promise<OpenedTimers> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(server);
  const connection = stack.use(await connectJetStream({ url: nats.url }));
  const parts = stack.move();
  return {
    timers: createJetStreamTimers(connection),
    now: () => Date.now(),
    pass() {},
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** A timer of a session and organization that no other test uses. */
function aTimer(kind: TimerKind = 'expiry'): Timer {
  return { organizationId: freshId('org'), sessionId: freshId('session'), kind };
}

function isSame(one: Timer, other: Timer): boolean {
  return one.organizationId === other.organizationId && one.kind === other.kind;
}

async function take(
  workQueue: WorkQueue<FiredTimer>,
  withinMs = SOON_MS,
): Promise<Delivery<FiredTimer>> {
  const deadline = Date.now() + withinMs;
  while (Date.now() < deadline) {
    const delivery = await workQueue.next(1_000, never).catch(() => null);
    if (delivery !== null) return delivery;
  }
  throw new Error(`nothing fired within ${withinMs} ms`);
}

/** The firing of that timer; those of earlier tests are skipped. */
async function takeOf(
  workQueue: WorkQueue<FiredTimer>,
  timer: Timer,
): Promise<Delivery<FiredTimer>> {
  for (;;) {
    const delivery = await take(workQueue);
    if (isSame(delivery.item, timer)) return delivery;
    await delivery.ack();
  }
}
