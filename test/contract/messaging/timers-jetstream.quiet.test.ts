import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADVISORY_STREAM, TIMERS_STREAM } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamTimers } from '#src/kernel/messaging/jetstream/jetstream-timers.ts';
import { aTimer, realTimers, take, timersTimes } from '#test/support/messaging/timers-suite.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';

describe.each(realTimers)('timers in time ($adapter)', (adapter) => timersTimes(adapter));

describe('timers (JetStream) and a death', () => {
  let nats: RealNats;
  beforeAll(async () => {
    nats = await startNats();
  });
  afterAll(() => nats[Symbol.asyncDispose]());

  test('of their timekeeper while it handles one: are delivered again and then removed', async () => {
    const timer = aTimer();
    {
      await using connection = await connectJetStream({ url: nats.url });
      const timers = createJetStreamTimers(connection, { leaseMs: 500 });
      const inbox = await timers.fired('timekeeper');
      await timers.schedule(timer, new Date());
      await take(inbox);
    }
    await using connection = await connectJetStream({ url: nats.url });
    const inbox = await createJetStreamTimers(connection, { leaseMs: 500 }).fired('timekeeper');
    const again = await take(inbox);
    expect([again.item, again.deliveries]).toMatchObject([timer, 2]);
    await again.ack();
    expect((await connection.jsm.streams.info(TIMERS_STREAM)).state.messages).toBe(0);
    // The server's advisories of items that were given up: none.
    expect((await connection.jsm.streams.info(ADVISORY_STREAM)).state.messages).toBe(0);
  });

  test('of the server stay scheduled, and those that became due meanwhile fire', async () => {
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
    await expect.poll(() => Date.now()).toBeGreaterThan(dueAt);
    await nats.restart();
    // In any order, if the start took so long that both are due.
    const fired = new Set<string>();
    while (fired.size < 2) {
      const delivery = await take(inbox);
      fired.add(delivery.item.sessionId);
      await delivery.ack();
    }
    expect(fired).toEqual(new Set([overdue.sessionId, later.sessionId]));
  });
});
