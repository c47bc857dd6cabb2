import { chmod, copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scratchDir } from '#test/support/scratch.ts';
import { json } from '#test/support/clients/command-line.ts';
import { failToStart } from '#test/support/service/main-process.ts';
import { eventually, startService } from '#test/support/service/service.ts';

const ENV = {
  MASTER_KEY: 'the-same-in-every-process-of-the-service',
  ...{ POOL_MIN_IDLE: '1', POOL_MAX: '4' },
};
/** The copy waits 15 s for the lease before it gives up. */
const GIVES_UP_MS = 60_000;

test('a copy of a data folder starts no second process of the same server', async () => {
  await using service = await startService(ENV);
  const created = await service.request('POST', '/api/sessions', { duration: '1h' });
  expect(created.status).toBe(201);
  await using copy = await scratchDir();
  await copyFile(join(service.dataDir, 'server-id'), join(copy.path, 'server-id'));
  await chmod(copy.path, 0o700);

  const { nats_url: NATS_URL, redis_url: REDIS_URL } = service.runtime;
  const shared = { ...ENV, ROLES: 'provisioner', NATS_URL, REDIS_URL, DATA_DIR: copy.path };
  const failed = await failToStart(shared, [], GIVES_UP_MS);
  expect(failed.code).toBe(1);
  expect(failed.said).toMatch(/another process runs as the server srv_[\w-]+/);
  expect(failed.said).toContain(join(copy.path, 'server-id'));
  expect(failed.left).toEqual([]);

  // The original is as before.
  const servers = (await json(service, 'servers', 'list')) as { status: string }[];
  expect(servers.map(({ status }) => status)).toEqual(['live']);
  const read = async () =>
    (await service.request('GET', `/api/sessions/${created.body.id}`)).body.status as string;
  await eventually(async () => (await read()) === 'active', 'its session goes on');
});
