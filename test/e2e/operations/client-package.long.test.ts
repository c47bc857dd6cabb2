import { spawnSync } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { scratchDir } from '#test/support/scratch.ts';
import { DEV_KEY, startService } from '#test/support/service/service.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const PROGRAM = `
import { createClient, ServiceError } from 'browser-session-service/client';
const [, , url, apiKey] = process.argv;
const client = createClient({ url, apiKey });
const session = await client.sessions.create({ duration: '5m', session_name: 'from a package' });
console.log(session.status, session.session_name);
await session.stop();
for await (const { type } of session.events()) if (type === 'session.stopped') console.log(type);
const refused = await client.sessions.get('ses_none').catch((error) => error);
console.log(refused instanceof ServiceError, refused.error);
`;

const TYPED = `
import { createClient } from 'browser-session-service/client';
const client = createClient({ url: 'http://service', apiKey: 'key' });
for await (const event of client.events())
  if (event.type === 'session.activated') {
    const id: string = event.data.workload.workloadId;
    console.log(id);
    // @ts-expect-error browser addresses are not part of the public event
    console.log(event.data.workload.cdp);
  }
const { status } = await client.sessions.get('ses_1');
const known: 'creating' | 'queued' | 'active' | 'stopping' | 'stopped' | 'failed' = status;
// @ts-expect-error there is no such field
console.log(known, (await client.sessions.get('ses_1')).nothing);
`;

it('the client’s package installs without a registry, and drives a service', async () => {
  await using folder = await scratchDir();
  const { path } = folder;
  // A separate build, so that the package has the present files.
  const packed = run(process.execPath, [join(ROOT, 'src/apps/client/pack.mjs'), path], ROOT);
  const tarball = packed.trim().split('\n').at(-1) ?? '';
  expect(basename(tarball)).toMatch(/^browser-session-service-[\d.]+\.tgz$/);
  await rm(join(ROOT, 'dist/client/package'), { recursive: true });
  await writeFile(join(path, 'package.json'), '{"private":true,"type":"module"}');
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], path);

  await writeFile(join(path, 'program.mjs'), PROGRAM);
  await using service = await startService({ POOL_MIN_IDLE: '1' });
  const said = run(process.execPath, ['program.mjs', service.apiUrl, DEV_KEY], path);
  expect(said.trim().split('\n')).toEqual([
    'active from a package',
    'session.stopped',
    'true SESSION_NOT_FOUND',
  ]);

  await writeFile(join(path, 'typed.ts'), TYPED);
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const options =
    '--ignoreConfig --noEmit --strict --module nodenext --target es2024 ' +
    '--lib es2024,esnext.disposable,dom --types';
  run(process.execPath, [tsc, ...options.split(' '), '', 'typed.ts'], path);
});

/** The program's output. @throws Error if it fails */
function run(command: string, args: string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}
