import { expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createJetStreamWorkQueues } from '#src/kernel/messaging/jetstream/jetstream-work-queue.ts';
import { aSession, change, queued, requested } from '#test/support/events.fixture.ts';
import { startNats } from '#test/support/servers/real-nats.ts';

test('a queue that an older version created gets a newer version’s subjects, and loses no item', async () => {
  await using nats = await startNats();
  await using connection = await connectJetStream({ url: nats.url, name: 'test' });
  const eventStore = createJetStreamEventStore(connection);
  const openWorkQueue = createJetStreamWorkQueues(connection);
  const session = aSession();
  const { signal } = new AbortController();
  const older = await openWorkQueue('work', ['evt.*.session.*.requested']);
  await eventStore.append([change(0, requested(session))]);
  const first = await older.next(60_000, signal);
  await first?.ack();

  const newer = await openWorkQueue('work', [
    'evt.*.session.*.requested',
    'evt.*.session.*.queued',
  ]);
  await eventStore.append([change(1, queued(session))]);
  const second = await newer.next(60_000, signal);
  expect(second?.item.type).toBe('session.queued');
  await second?.ack();
  expect(await newer.next(200, signal)).toBeNull();
});
