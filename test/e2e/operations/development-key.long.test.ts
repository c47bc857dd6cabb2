import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  DEV_KEY,
  eventually,
  startService,
  type RunningService,
} from '#test/support/service/service.ts';
import { startTwoApis } from '#test/support/service/two-processes.ts';

/** The key of the organization dev that starts issue: revoked by its owner, then a restart. */

const OTHER_KEY = 'bss_dev_another-key-of-the-organization-dev';

test('a revoked development key stays refused after a restart, which generates a new one', async () => {
  await using service = await startService({ DEV_API_KEY: '' });
  const first = await printedKey(service);
  expect(await keysOf(service, first)).toEqual([expect.objectContaining({ key_id: 'key_dev' })]);
  expect(await revoke(service, first, 'key_dev')).toBe(200);

  await restart(service);
  const second = await printedKey(service);
  expect(second).not.toBe(first);
  expect(await statusFor(service, first)).toBe(401);
  // The new key has a new id: revoking the old one again does not revoke it.
  expect(await revoke(service, second, 'key_dev')).toBe(404);
  const [issued, ...others] = await keysOf(service, second);
  expect(issued).toMatchObject({ key_id: expect.not.stringMatching('key_dev$'), role: 'owner' });
  expect(others).toEqual([]);
  expect(service.output()).toContain('The development key was revoked; a new one was generated.');
  const file = join(service.dataDir, 'dev-api-key');
  expect([await readFile(file, 'utf8'), (await stat(file)).mode & 0o777]).toEqual([
    `${second}\n`,
    0o600,
  ]);

  await restart(service);
  expect(await printedKey(service)).toBe(second);
  expect(await keysOf(service, second)).toEqual([issued]);
  expect(await revoke(service, second, issued?.key_id ?? '')).toBe(200);

  await restart(service);
  const third = await printedKey(service);
  expect(await Promise.all([first, second, third].map((key) => statusFor(service, key)))).toEqual([
    401, 401, 200,
  ]);
});

test('a revoked DEV_API_KEY stays refused; the start warns and generates no other key', async () => {
  await using service = await startService();
  expect(await revoke(service, DEV_KEY, 'key_dev')).toBe(200);

  await restart(service);
  expect(await statusFor(service, DEV_KEY)).toBe(401);
  await eventually(() => service.output().includes('is ready: '), 'the welcome is printed');
  expect(service.output()).toContain('DEV_API_KEY was revoked: set another one');
  expect(service.output()).not.toContain('Bearer ');

  await restart(service, { DEV_API_KEY: OTHER_KEY });
  expect(await printedKey(service)).toBe(OTHER_KEY);
  expect(await keysOf(service, OTHER_KEY)).toHaveLength(1);
  expect(await statusFor(service, DEV_KEY)).toBe(401);
});

test('a revoked development key is refused by every API process, also by one that restarts with it', async () => {
  await using apis = await startTwoApis();
  const { first, second } = apis;
  expect(await revoke(second, DEV_KEY, 'key_dev')).toBe(200);
  await eventually(async () => (await statusFor(first, DEV_KEY)) === 401, 'the first refuses it');
  expect(await statusFor(second, DEV_KEY)).toBe(401);

  await restart(second);
  expect(await statusFor(second, DEV_KEY)).toBe(401);
  expect(await statusFor(first, DEV_KEY)).toBe(401);
  expect(second.output()).toContain('DEV_API_KEY was revoked: set another one');
});

const PRINTED_KEY = /API key of the organization "dev": (\S+)/;

/** The key that the last start has printed, which is also in the command that it prints. */
async function printedKey(service: RunningService): Promise<string> {
  const key = await eventually(
    () => PRINTED_KEY.exec(service.output())?.[1] ?? null,
    'the key is printed',
  );
  await eventually(() => service.output().includes(`Bearer ${key}"`), 'the command has that key');
  return key;
}

async function restart(service: RunningService, env?: Record<string, string>): Promise<void> {
  expect(await service.end('SIGTERM')).toBe(0);
  await service.startAgain(env);
}

const by = (key: string) => ({ authorization: `Bearer ${key}` });

async function statusFor(service: RunningService, key: string): Promise<number> {
  return (await service.request('GET', '/api/status', undefined, by(key))).status;
}

async function revoke(service: RunningService, key: string, id: string): Promise<number> {
  return (await service.request('DELETE', `/api/keys/${id}`, undefined, by(key))).status;
}

async function keysOf(service: RunningService, key: string): Promise<{ key_id: string }[]> {
  return (await service.request('GET', '/api/keys', undefined, by(key))).body.keys;
}
