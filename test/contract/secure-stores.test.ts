import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRedisViews } from '#projections/store/redis/redis-views.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { makeCertificate, type CertificateFiles } from '#test/support/servers/certificates.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { startSecureRedis } from '#test/support/servers/real-redis.ts';
import { eventually } from '#test/support/service/service.ts';

/** The event store and the read model with credentials and TLS, on real servers. */

const PASSWORD = 'hunter2-hunter2';
let folder = '';
let server: CertificateFiles;
let client: CertificateFiles;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bss-tls-'));
  server = await makeCertificate(folder, 'server');
  client = await makeCertificate(folder, 'client');
});
afterAll(() => rm(folder, { recursive: true }));

function natsConfig(more = ''): string {
  return `
    authorization { users: [{ user: api, password: "${PASSWORD}" }] }
    tls { cert_file: "${server.cert}", key_file: "${server.key}", timeout: 5 ${more} }`;
}

/**
 * The error of a refused connection, or on a busy machine of its time-out; it must not contain a
 * password.
 */
async function refusalOf(options: Parameters<typeof connectJetStream>[0]): Promise<string> {
  const outcome = await connectJetStream({ readyMs: 500, ...options }).then(
    async (connection) => {
      await connection[Symbol.asyncDispose]();
      return 'connected';
    },
    (error: unknown) => error,
  );
  const said = outcome instanceof Error ? `${outcome.message} ${outcome.stack}` : String(outcome);
  expect(said).not.toContain(PASSWORD);
  return said;
}

describe('the event store by TLS', () => {
  test('accepts only clients that trust its authority and have a password', async () => {
    await using nats = await startNats(natsConfig());
    const url = `tls://api:${PASSWORD}@127.0.0.1:${nats.port}`;
    const tls = { caFile: server.cert };
    await using connection = await connectJetStream({ url, tls });
    expect(connection.newInbox()).toMatch(/^_INBOX_api\./);
    await nats.restart();
    await eventually(() => connection.isConnected(), 'it is connected again');

    expect(await refusalOf({ url })).toMatch(/self-signed certificate|time/);
    expect(await refusalOf({ url, tls: { caFile: client.cert } })).toMatch(/self-signed|time/);
    expect(await refusalOf({ url: url.replace('api:', 'api:x'), tls })).toMatch(
      /[Aa]uthorization|time/,
    );
  });

  test('requires a client certificate if configured', async () => {
    await using nats = await startNats(natsConfig(`, ca_file: "${client.cert}", verify: true`));
    const url = `tls://api:${PASSWORD}@127.0.0.1:${nats.port}`;
    const caFile = server.cert;
    const ours = { caFile, certFile: client.cert, keyFile: client.key };
    await using connection = await connectJetStream({ url, tls: ours });
    expect(connection.isConnected()).toBe(true);
    expect(await refusalOf({ url, tls: { caFile } })).toMatch(/no connection to NATS/);
  });

  test('is required: without it on the server, no password is sent', async () => {
    await using nats = await startNats(
      `authorization { users: [{ user: api, password: "${PASSWORD}" }] }`,
    );
    const url = `tls://api:${PASSWORD}@127.0.0.1:${nats.port}`;
    expect(await refusalOf({ url })).toMatch(/does not support 'tls'|time/);
  });
});

describe('the read model by TLS', () => {
  test('accepts only listed users that trust its authority', async () => {
    await using redis = await startSecureRedis(server, { user: 'bss', password: PASSWORD });
    const url = `rediss://bss:${PASSWORD}@127.0.0.1:${redis.port}`;
    const tls = { caFile: server.cert };
    await using views = await createRedisViews({ url, tls });
    await eventually(() => views.isReachable(), 'it answers');
    expect(await views.checkpoint('session-view:v1')).toBe(0);

    const wrong = [
      { url },
      { url, tls: { caFile: client.cert } },
      { url: url.replace('bss:', 'bss:x'), tls },
      { url: url.replace('rediss:', 'redis:') },
    ];
    const refused = wrong.map(async (options) => {
      await using other = await createRedisViews(options);
      await expect(other.checkpoint('session-view:v1')).rejects.toThrow();
    });
    await Promise.all(refused);

    // A failed connection may fail once more after the test has stopped waiting.
    await using otherClient = await createRedisViews({ url });
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const again = () => resolve(otherClient.redis.stream.emit('error', new Error('once more')));
    otherClient.redis.once('error', again);
    expect(await promise).toBe(true);
  });
});
