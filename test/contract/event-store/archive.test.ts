import { expect, test } from 'vitest';
import { ARCHIVE_STREAM, filters } from '#events/subjects.ts';
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/event-store/jetstream/jetstream-event-store.ts';
import { follow } from '#src/event-store/jetstream/subscribe.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { appendEach } from '#test/support/stores/event-stores.ts';

test('the archive delivers the events of the store, the newest too, without a consumer on the store', async () => {
  await using nats = await startNats();
  await using connection = await connectJetStream({ url: nats.url, hasArchive: true });
  const eventStore = createJetStreamEventStore(connection);
  const early = await appendEach(eventStore, aSession(), 5);
  const stop = new AbortController();
  const options = {
    ...{ subjects: filters.all, after: early[1] ?? 0, signal: stop.signal },
    onUnreadable: ({ reason }: { reason: string }) => expect.fail(reason),
  };
  const received: number[] = [];
  const followers = async (stream: string) =>
    (await connection.jsm.streams.info(stream)).state.consumer_count;
  const isBefore = () => received.length < early.length - 2;
  let late: number[] = [];
  for await (const batch of follow(connection, { ...options, stream: ARCHIVE_STREAM })) {
    received.push(...batch.map(({ sequence }) => sequence));
    if (isBefore()) continue;
    if (late.length === 0) {
      expect([await followers(ARCHIVE_STREAM), await followers('EVENTS')]).toEqual([1, 0]);
      late = await appendEach(eventStore, aSession(), 4);
    }
    if (received.length === 7) stop.abort();
  }
  expect(received).toEqual([...early.slice(2), ...late]);
});
