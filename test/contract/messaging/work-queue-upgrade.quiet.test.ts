import { expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createJetStreamWorkQueues } from '#src/kernel/messaging/jetstream/jetstream-work-queue.ts';
import { aSession, change, requested } from '#test/support/events.fixture.ts';
import { startNats } from '#test/support/servers/real-nats.ts';

test('the leases of a queue without a bound stay the same, also where an older version made them grow', async () => {
  await using nats = await startNats();
  await using connection = await connectJetStream({ url: nats.url, name: 'test' });
  const eventStore = createJetStreamEventStore(connection);
  const leaseMs = 500;
  const openWorkQueue = createJetStreamWorkQueues(connection, { leaseMs });
  const subjects = ['evt.*.session.*.requested'];
  const { signal } = new AbortController();
  await openWorkQueue('work', subjects);
  const queue = await openWorkQueue('work', subjects, { isBounded: false });
  const { config } = await connection.jsm.consumers.info('EVENTS', 'work');
  expect(config.backoff ?? []).toEqual([]);
  expect(config.ack_wait).toBe(leaseMs * 1e6);

  await eventStore.append([change(0, requested(aSession()))]);
  for (let given = 0; given < 8; given += 1) (await queue.next(5_000, signal))?.retryAfter(0);
  // Its holder is killed.
  expect((await queue.next(5_000, signal))?.deliveries).toBe(9);
  expect((await queue.next(12 * leaseMs - 1_000, signal))?.deliveries).toBe(10);
});
