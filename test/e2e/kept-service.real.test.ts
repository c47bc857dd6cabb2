import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { isRunning, scratchDir } from '#test/support/scratch.ts';
import { giveCertificate, isReady, settingsOf } from '#test/support/service/service-process.ts';
import { eventually } from '#test/support/service/service.ts';

const KEEPER = fileURLToPath(new URL('../support/shared/keeper.ts', import.meta.url));

/** The keeper of a service in a folder below `path`, with the file of crashes beside it. */
async function keep(path: string, env: Record<string, string> = {}) {
  const [folder, crashes] = [join(path, 'kept'), join(path, 'crashes')];
  await mkdir(folder);
  giveCertificate(join(folder, 'data'));
  const settings = await settingsOf(join(folder, 'data'), env);
  const keeper = spawn(process.execPath, [KEEPER, folder], {
    env: { ...process.env, TEST_CRASHES: crashes, ...settings },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const read = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
  return { keeper, folder, ended: once(keeper, 'exit'), crashes: () => read(crashes), read };
}

test('a shared service ends in order with the process of tests that shares it', async () => {
  await using shelf = await scratchDir();
  const { keeper, folder, ended, crashes, read } = await keep(shelf.path);
  await eventually(() => isReady(read(join(folder, 'output'))), 'it is ready');
  const pid = Number(read(join(folder, 'pid')));
  expect(isRunning(pid)).toBe(true);
  // The kernel does so at the end of that process, whatever its end is.
  keeper.stdin.destroy();
  await ended;
  expect([isRunning(pid), existsSync(folder), crashes()]).toEqual([false, false, '']);
});

test('a service that ends by itself is a crash, with what it has printed', async () => {
  await using shelf = await scratchDir();
  const { folder, ended, crashes } = await keep(shelf.path, { CREATE_WAIT: 'a while' });
  await ended;
  const output = expect.stringContaining('CREATE_WAIT: a while is not like') as string;
  expect(JSON.parse(crashes())).toEqual({ end: 1, output });
  expect(existsSync(folder)).toBe(false);
});
