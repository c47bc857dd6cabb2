import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { scratchDir } from '#test/support/scratch.ts';

const LAUNCH = fileURLToPath(new URL('../../../src/start/embedded/launch.mjs', import.meta.url));
const DRAINING = `
  process.once('SIGTERM', () => { console.log('drained'); process.exit(0); });
  setInterval(() => {}, 1000);
  console.log('up', ...process.argv.slice(2));
`;

test('the target gets its arguments and SIGTERM, and its exit code is the launcher’s', async () => {
  await using dir = await scratchDir();
  await writeFile(`${dir.path}/service.ts`, DRAINING);
  const launched = spawn(process.execPath, [LAUNCH, 'run', `${dir.path}/service.ts`, '--json']);
  const said = collect(launched.stdout);
  await expect.poll(said).toBe('up --json\n');
  launched.kill('SIGTERM');
  // At the close all output has been read.
  expect(await once(launched, 'close')).toEqual([0, null]);
  expect(said()).toContain('drained');

  await writeFile(`${dir.path}/failing.ts`, 'process.exitCode = 3;');
  const failing = spawn(process.execPath, [LAUNCH, 'run', `${dir.path}/failing.ts`]);
  expect(await once(failing, 'exit')).toEqual([3, null]);
});

test('the target ends as on SIGTERM when the npm that started it is killed with -9', async () => {
  await using dir = await scratchDir();
  await writeFile(`${dir.path}/service.ts`, DRAINING);
  // Two commands, so that the shell stays as the parent, as npm does.
  const script = '"$0" "$1" run "$2"; echo the parent lives';
  const npm = spawn('sh', ['-c', script, process.execPath, LAUNCH, `${dir.path}/service.ts`], {
    env: { ...process.env, npm_lifecycle_event: 'start' },
  });
  const said = collect(npm.stdout);
  await expect.poll(said).toBe('up\n');
  npm.kill('SIGKILL');
  await expect.poll(said).toBe('up\ndrained\n');
});

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return () => text;
}
