import { expect, test } from 'vitest';
import { startNats } from '#test/support/servers/real-nats.ts';
import { startRedis } from '#test/support/servers/real-redis.ts';
import { eventually, startService } from '#test/support/service/service.ts';

/** Server configuration: a user that may do everything, or everything except subscribe. */
function users(mayFollow: boolean): string {
  const denied = mayFollow ? [] : ['$JS.API.CONSUMER.CREATE.EVENTS.>'];
  const permissions = JSON.stringify({ publish: { allow: ['>'], deny: denied } });
  return `authorization: { users: [ { user: app, password: pw, permissions: ${permissions} } ] }`;
}

test('a process that may not subscribe to the event store is not ready, and serves again once it may', async () => {
  await using nats = await startNats(users(true));
  await using redis = await startRedis();
  await using service = await startService({
    NATS_URL: nats.url.replace('//', '//app:pw@'),
    REDIS_URL: redis.url,
    MASTER_KEY: 'master-key-of-a-permission-0123456789',
  });
  const database = async () =>
    (await service.request('GET', '/api/health')).body.dependencies.database;
  expect(await database()).toBe('healthy');
  const before = await service.request('POST', '/api/sessions', {});
  expect(before.status).toBe(201);

  await nats.reconfigure(users(false));
  // More than one attempt has failed; each is logged.
  const failed = 'this process receives no events from the event store';
  await eventually(() => service.output().split(failed).length > 2, 'it is tried again');
  await eventually(async () => (await database()) === 'degraded', 'its health says so');
  const unready = await service.request('GET', '/api/ready');
  expect(unready.status).toBe(503);
  expect(unready.body.context.waiting_for).toContain(
    'event log, from which this process receives no events',
  );

  // Keys may have been revoked meanwhile: after 30 s none is accepted, by this process.
  const list = async () => (await service.request('GET', '/api/sessions')).status;
  const silence = async () => {
    const { body } = await service.request('GET', '/api/ready');
    return body.context.reader_silence_seconds.EVENTS as number;
  };
  expect(await list()).toBe(200);
  await expect.poll(list, { interval: 1_000, timeout: 90_000 }).toBe(503);
  expect(await silence()).toBeGreaterThan(30);

  await nats.reconfigure(users(true));
  await eventually(async () => (await database()) === 'healthy', 'it receives events again');
  await eventually(
    async () => (await service.request('GET', '/api/ready')).status === 200,
    'it is ready again',
  );
  expect(await list()).toBe(200);
  // A create is answered once this process has received the event that its session is active.
  const after = await service.request('POST', '/api/sessions', {});
  expect([after.status, after.body.status]).toEqual([201, 'active']);
});
