import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { startEmbedded } from '#src/start/embedded/embedded.ts';
import type { EmbeddedEvent } from '#src/start/embedded/embedded.ts';
import { newAccountSeed, readIssuer } from '#src/features/nats-tenants/nkey.ts';
import { isRunning, programPath, scratchDir } from '#test/support/scratch.ts';
import { freePort } from '#test/support/servers/ports.ts';

const ISSUER = readIssuer(newAccountSeed())?.publicKey ?? '';
const NATS = { host: '127.0.0.1', port: null, issuer: ISSUER };
/** The bound that the design promises for a killed part. */
const WHOLE_AGAIN_MS = 15_000;

test('nats-server is restarted after kill -9, on the same port with its messages', async () => {
  await using dir = await scratchDir();
  const events: EmbeddedEvent[] = [];
  await using embedded = await startEmbedded({
    dataDir: dir.path,
    natsServer: programPath('NATS_SERVER'),
    nats: NATS,
    onEvent: (event) => events.push(event),
  });
  await withNats(embedded.natsUrl, async (connection) => {
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: 'LOG', subjects: ['log.>'] });
    await jetstream(connection).publish('log.first', 'kept');
  });

  const killed = await pidOf(dir.path, 'nats');
  process.kill(killed, 'SIGKILL');
  await expect.poll(() => events.at(-1)?.what, { timeout: WHOLE_AGAIN_MS }).toBe('restarted');

  await withNats(embedded.natsUrl, async (connection) => {
    const manager = await jetstreamManager(connection);
    const message = await manager.streams.getMessage('LOG', { seq: 1 });
    expect(message?.string()).toBe('kept');
  });
  expect(await pidOf(dir.path, 'nats')).not.toBe(killed);
});

test('redis-server is restarted after kill -9, on the same port with its last snapshot', async () => {
  await using dir = await scratchDir();
  const events: EmbeddedEvent[] = [];
  await using embedded = await startEmbedded({
    dataDir: dir.path,
    redisServer: programPath('REDIS_SERVER'),
    nats: NATS,
    onEvent: (event) => events.push(event),
  });
  await withRedis(embedded.redisUrl, async (redis) => {
    await redis.set('view', 'kept');
    await redis.save();
  });

  process.kill(await pidOf(dir.path, 'redis'), 'SIGKILL');
  await expect.poll(() => events.at(-1)?.what, { timeout: WHOLE_AGAIN_MS }).toBe('restarted');

  await withRedis(embedded.redisUrl, async (redis) => {
    expect(await redis.get('view')).toBe('kept');
  });
});

test('a stop leaves no process, and the next start finds the data on another port', async () => {
  await using dir = await scratchDir();
  const options = {
    dataDir: dir.path,
    natsServer: programPath('NATS_SERVER'),
    redisServer: programPath('REDIS_SERVER'),
    nats: NATS,
    onEvent: () => {},
  };
  let pids: number[] = [];
  {
    await using embedded = await startEmbedded(options);
    pids = [await pidOf(dir.path, 'nats'), await pidOf(dir.path, 'redis')];
    await withRedis(embedded.redisUrl, async (redis) => {
      await redis.set('view', 'kept');
    });
    expect(pids.map(isRunning)).toEqual([true, true]);
  }
  expect(pids.map(isRunning)).toEqual([false, false]);

  await using again = await startEmbedded(options);
  await withRedis(again.redisUrl, async (redis) => {
    expect(await redis.get('view')).toBe('kept');
  });
});

test('nats-server listens on the configured port, admits the service alone, and keeps its streams', async () => {
  await using dir = await scratchDir();
  const port = await freePort();
  const options = { dataDir: dir.path, natsServer: programPath('NATS_SERVER'), onEvent: () => {} };
  {
    await using embedded = await startEmbedded({ ...options, nats: { ...NATS, port } });
    expect(new URL(embedded.natsUrl ?? '').host).toBe(`127.0.0.1:${port}`);
    await withNats(embedded.natsUrl, async (connection) => {
      const manager = await jetstreamManager(connection);
      await manager.streams.add({ name: 'LOG', subjects: ['log.>'] });
      await jetstream(connection).publish('log.first', 'kept');
    });
    await expect(connect({ servers: `127.0.0.1:${port}`, reconnect: false })).rejects.toThrow();
    expect((await stat(join(dir.path, 'nats', 'nats.conf'))).mode & 0o077).toBe(0);
    expect((await stat(join(dir.path, 'nats-password'))).mode & 0o077).toBe(0);
  }
  await using again = await startEmbedded({ ...options, nats: NATS });
  await withNats(again.natsUrl, async (connection) => {
    const manager = await jetstreamManager(connection);
    expect((await manager.streams.getMessage('LOG', { seq: 1 }))?.string()).toBe('kept');
  });
});

test('a part without a program is not started', async () => {
  await using dir = await scratchDir();
  await using embedded = await startEmbedded({ dataDir: dir.path, nats: NATS, onEvent: () => {} });
  expect(embedded).not.toHaveProperty('natsUrl');
  expect(embedded).not.toHaveProperty('redisUrl');
});

async function withNats(
  url: string | undefined,
  use: (connection: Awaited<ReturnType<typeof connect>>) => Promise<void>,
): Promise<void> {
  const { host, username: user, password: pass } = new URL(url ?? '');
  const connection = await connect({ servers: host, user, pass, reconnect: false });
  try {
    await use(connection);
  } finally {
    await connection.close();
  }
}

async function withRedis(
  url: string | undefined,
  use: (redis: Redis) => Promise<void>,
): Promise<void> {
  const redis = new Redis(url ?? '', { retryStrategy: () => null, maxRetriesPerRequest: 0 });
  try {
    await use(redis);
  } finally {
    redis.disconnect();
  }
}

async function pidOf(dataDir: string, part: EmbeddedEvent['part']): Promise<number> {
  const record = JSON.parse(await readFile(join(dataDir, `${part}.pid`), 'utf8')) as {
    pid: number;
  };
  return record.pid;
}
