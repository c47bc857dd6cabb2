import { join } from 'node:path';
import { expect, it } from 'vitest';
import { restoreBackup, takeBackup } from '#src/features/backup/backup.jetstream.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createJetStreamTruncation } from '#src/kernel/event-store/jetstream/jetstream-truncation.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { appendEach } from '#test/support/stores/event-stores.ts';

it('a restored event store can be truncated', async () => {
  await using folder = await scratchDir();
  const backup = join(folder.path, 'backup');
  {
    await using nats = await startNats();
    await using connection = await connectJetStream({ url: nats.url });
    await appendEach(createJetStreamEventStore(connection), aSession(), 4);
    await takeBackup(connection, backup);
  }
  await using nats = await startNats();
  {
    await using empty = await connectJetStream({
      url: nats.url,
      makesStreams: false,
      requiresLog: false,
    });
    await restoreBackup(empty, backup);
  }
  await using connection = await connectJetStream({ url: nats.url });
  const { config } = await connection.jsm.streams.info('PUBLIC');
  expect(config).toMatchObject({ deny_delete: true, deny_purge: false });
  const truncation = createJetStreamTruncation(connection);
  await truncation.truncate(2);
  const info = await createJetStreamEventStore(connection).info();
  expect(info).toMatchObject({ firstSequence: 3, lastSequence: 4 });
});
