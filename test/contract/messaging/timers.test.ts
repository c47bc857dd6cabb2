import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { firedSubject, TIMERS_STREAM } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamDeadLetters } from '#src/kernel/messaging/jetstream/jetstream-dead-letters.ts';
import { createJetStreamTimers } from '#src/kernel/messaging/jetstream/jetstream-timers.ts';
import type { Timer } from '#src/kernel/messaging/timers.ts';
import {
  aTimer,
  memoryTimers,
  realTimers,
  take,
  timersRules,
  timersTimes,
} from '#test/support/messaging/timers-suite.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

describe.each(realTimers)('timers ($adapter)', (adapter) => timersRules(adapter));
describe.each(memoryTimers)('timers ($adapter)', (memory) => {
  const time = useVirtualTime();
  timersRules(memory, time);
  timersTimes(memory, time);
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
    await expect.poll(() => heldBy(connection)).toEqual([subject]);
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

  test('are kept while they are dead letters, and removed once a retry has handled them', async () => {
    const timer = aTimer();
    await away(timer);
    await using connection = await connectJetStream({ url: nats.url });
    const deadLetters = createJetStreamDeadLetters(connection);
    const inbox = await createJetStreamTimers(connection).fired('timekeeper');
    (await take(inbox)).deadLetter('a bug');
    await expect.poll(() => deadLetters.list()).toHaveLength(1);
    const [event] = await deadLetters.list();
    if (event === undefined) throw new Error('there is no dead letter');
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
