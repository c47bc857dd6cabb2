import { pino } from 'pino';
import { expect, test } from 'vitest';
import { PUBLIC_STREAM } from '#events/subjects.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { publishToTenants } from '#src/features/nats-tenants/publish.jetstream.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createJetStreamTruncation } from '#src/kernel/event-store/jetstream/jetstream-truncation.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { eventually, startService } from '#test/support/service/service.ts';

const MASTER_KEY = 'of-a-service-that-admits-no-tenants';

test('tenants that are admitted no more hold back no event from the archive', async () => {
  await using nats = await startNats();
  await using connection = await connectJetStream({ url: nats.url });
  const eventStore = createJetStreamEventStore(connection);
  const context = createCommandContext(eventStore, Date.now);
  const register = (id: string) =>
    registerOrganization(context, { id, name: id, tier: 'free', credits: 0 }, newMetadata('test'));
  const published = async () => (await connection.jsm.streams.info(PUBLIC_STREAM)).state.messages;
  const truncation = createJetStreamTruncation(connection);

  {
    await using _ = await startService({ NATS_URL: nats.url, MASTER_KEY });
    // Where no tenant ever was, nothing is copied, and nothing is held back.
    expect(await truncation.heldBackTo()).toBeNull();
    expect(await published()).toBe(0);
  }
  {
    await using _ = publishToTenants({ connection, eventStore, logger: pino({ level: 'silent' }) });
    await eventually(async () => (await published()) > 0, 'tenants were admitted');
  }
  await register('acme');
  expect(await truncation.heldBackTo()).toMatchObject({ by: PUBLIC_STREAM });
  await using _ = await startService({ NATS_URL: nats.url, MASTER_KEY });
  await eventually(async () => (await truncation.heldBackTo()) === null, 'all is copied');
});
