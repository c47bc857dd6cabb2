import { expect, test } from 'vitest';
import type { TimerKind } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { Delivery, WorkQueue } from '#src/kernel/messaging/work-queue.ts';
import { createJetStreamTimers } from '#src/kernel/messaging/jetstream/jetstream-timers.ts';
import { createMemoryTimers } from '#src/kernel/messaging/timers.memory.ts';
import type { FiredTimer, Timer, Timers } from '#src/kernel/messaging/timers.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { elsewhere, natsServers, type Server } from '#test/support/servers/containers.ts';
import { hooks } from '#test/support/time/hooks.ts';

type OpenedTimers = AsyncDisposable & {
  timers: Timers;
  /** The adapter's clock. */
  now(): number;
  /** Advances a clock that does not advance by itself. */
  pass(untilMs: number): void;
};

type TimersAdapter = { adapter: string; open: () => Promise<OpenedTimers> };

export const memoryTimers = elsewhere<TimersAdapter>([
  { adapter: 'memory', open: openMemoryTimers },
]);
export const realTimers: readonly TimersAdapter[] = natsServers.map(({ where, start }) => ({
  adapter: `JetStream in a ${where}`,
  open: async () => openRealTimers(await start()),
}));

const never = new AbortController().signal;
const SOON_MS = 60_000;

/** What holds whenever a timer fires. */
export function timersRules({ open }: TimersAdapter, { beforeAll, afterAll } = hooks): void {
  let opened: OpenedTimers;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('fire at once when their time has passed', async () => {
    const timer = aTimer();
    await schedule(opened, timer, -60_000);
    expect(await firedUpTo(opened, timer, 0)).toContainEqual(timer);
  });

  test('are listed by organization until they fire or are cancelled', async () => {
    const [due, later] = [aTimer(), aTimer('idle')];
    const cancelled = { ...later, sessionId: freshId('session') };
    const never = { ...later, kind: 'expiry' } as const;
    await schedule(opened, due, -1);
    await schedule(opened, later, 60_000);
    await schedule(opened, cancelled, 60_000);
    await opened.timers.cancel(cancelled.organizationId, cancelled.sessionId);
    expect(await firedUpTo(opened, due, 0)).toContainEqual(due);
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
    await schedule(opened, timer, -1);
    (await takeOf(inbox, timer)).retryAfter(100);
    opened.pass(opened.now() + 100);
    const again = await takeOf(inbox, timer);
    expect(again.deliveries).toBe(2);
  });
}

/** When timers fire, with some seconds between them. */
export function timersTimes({ open }: TimersAdapter, { beforeAll, afterAll } = hooks): void {
  let opened: OpenedTimers;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('fire once when they are due, and not before', async () => {
    const inbox = await opened.timers.fired(freshId('inbox'));
    const [timer, later] = [aTimer(), aTimer()];
    const due = opened.now() + 300;
    // So far apart that a pause of the machine changes no order.
    await schedule(opened, timer, 300);
    await schedule(opened, later, 1_300);
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

  test('move when they are scheduled again', async () => {
    const [moved, between, last] = [aTimer(), aTimer(), aTimer()];
    // The times are so far apart that a pause of the machine changes no order.
    await schedule(opened, moved, 1_500);
    await schedule(opened, moved, 3_500);
    await schedule(opened, between, 2_500);
    await schedule(opened, last, 4_500);
    const fired = await firedUpTo(opened, last, 4_500);
    const ours = fired.filter((timer) => [moved, between, last].some((one) => isSame(one, timer)));
    expect(ours).toEqual([between, moved, last]);
  });

  test('of one session are independent, and removed together when cancelled', async () => {
    const expiry = aTimer('expiry');
    const warning: Timer = { ...expiry, kind: 'expiry-warning' };
    const [kept, last] = [aTimer('expiry'), aTimer('idle')];
    const idle: Timer = { ...kept, kind: 'idle' };
    // None fires before the cancellation.
    for (const timer of [expiry, warning, kept, idle]) await schedule(opened, timer, 2_000);
    await schedule(opened, last, 3_000);
    await opened.timers.cancel(expiry.organizationId, expiry.sessionId);
    const fired = await firedUpTo(opened, last, 3_000);
    expect(fired).toContainEqual(kept);
    expect(fired).toContainEqual(idle);
    expect(fired).not.toContainEqual(expiry);
    expect(fired).not.toContainEqual(warning);
  });
}

function schedule(opened: OpenedTimers, timer: Timer, inMs: number): Promise<void> {
  return opened.timers.schedule(timer, new Date(opened.now() + inMs));
}

/** The firings for the organizations of the timers, in order, up to and including the last one. */
async function firedUpTo(opened: OpenedTimers, last: Timer, inMs: number): Promise<Timer[]> {
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
export function aTimer(kind: TimerKind = 'expiry'): Timer {
  return { organizationId: freshId('org'), sessionId: freshId('session'), kind };
}

function isSame(one: Timer, other: Timer): boolean {
  return one.organizationId === other.organizationId && one.kind === other.kind;
}

/** The next firing, also across an outage. */
export async function take(workQueue: WorkQueue<FiredTimer>): Promise<Delivery<FiredTimer>> {
  const deadline = Date.now() + SOON_MS;
  while (Date.now() < deadline) {
    const delivery = await workQueue.next(1_000, never).catch(() => null);
    if (delivery !== null) return delivery;
  }
  throw new Error(`nothing fired within ${SOON_MS} ms`);
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
