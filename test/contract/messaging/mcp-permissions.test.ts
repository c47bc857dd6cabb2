import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamMcpSessions } from '#src/kernel/messaging/jetstream/jetstream-mcp-sessions.ts';
import { startNatsWithRoles, type NatsWithRoles } from '#test/support/servers/nats-roles.ts';

let nats: NatsWithRoles;
beforeAll(async () => {
  nats = await startNatsWithRoles();
  const url = nats.urlOf('service');
  await using _ = await connectJetStream({ url, inboxPrefix: '_INBOX_service' });
});
afterAll(() => nats[Symbol.asyncDispose]());

test.each(['api', 'timekeeper', 'service'] as const)('%s may follow MCP sessions', async (user) => {
  await using connection = await connectJetStream({
    ...{ url: nats.urlOf(user), makesStreams: false, inboxPrefix: `_INBOX_${user}` },
  });
  const sessions = await createJetStreamMcpSessions(connection);
  const id = `mcp_${user}`;
  await sessions.create(id, {
    ...{ organizationId: 'acme', userId: 'ada', client: 'agent 1.0' },
    ...{ stream: 'none', streamId: null, ended: null },
  });
  expect(await sessions.change(id, (one) => one)).toMatchObject({ userId: 'ada' });
  expect((await sessions.all()).map((one) => one.id)).toContain(id);
  await sessions.remove(id);
  expect(await sessions.get(id)).toBeNull();
});
