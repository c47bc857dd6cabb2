import { execFile } from 'node:child_process';
import { cp, readFile, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { scratchDir } from '#test/support/scratch.ts';

const TOP = fileURLToPath(new URL('../../..', import.meta.url));

test('help and version need no package: a checkout without node_modules answers them', async () => {
  await using checkout = await checkoutOfProgram();
  expect(await bss(checkout.path, '--version')).toEqual(answer(`${packageJson.version}\n`));
  const all = await bss(checkout.path, '--help');
  expect(all).toEqual(answer(expect.stringContaining('  bss orgs create ')));
  const one = await bss(checkout.path, 'sql', '--help');
  expect(one).toEqual(answer(expect.stringMatching(/^usage: bss sql QUERY \[OPTIONS\]\n/)));
});

test('compiled code is kept in the checkout; a changed module replaces its files', async () => {
  await using checkout = await checkoutOfProgram();
  const kept = async () => {
    const folder = join(checkout.path, '.tools', 'compile-cache');
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  };
  await bss(checkout.path, '--help');
  const first = await kept();
  expect(first.length).toBeGreaterThan(5);
  const help = join(checkout.path, 'src/apps/cli/help.ts');
  await writeFile(help, (await readFile(help, 'utf8')).replace('usage: bss', 'how: bss'));
  const changed = await bss(checkout.path, '--help');
  expect(changed).toEqual(answer(expect.stringMatching(/^how: bss COMMAND/)));
  expect((await kept()).toSorted()).toEqual(first.toSorted());
});

test('where no compiled code can be kept, the command answers all the same', async () => {
  await using checkout = await checkoutOfProgram();
  await writeFile(join(checkout.path, '.tools'), 'a file in the place of the folder');
  expect(await bss(checkout.path, '--version')).toEqual(answer(`${packageJson.version}\n`));
});

/** The files of the program alone, without the packages and without the rest of the service. */
async function checkoutOfProgram() {
  const folder = await scratchDir();
  await cp(join(TOP, 'package.json'), join(folder.path, 'package.json'));
  for (const part of ['src/apps/cli', 'src/start/embedded'])
    await cp(join(TOP, part), join(folder.path, part), { recursive: true });
  await symlink('src/apps/cli/bss.mjs', join(folder.path, 'bss'));
  return folder;
}

function answer(stdout: unknown) {
  return { code: 0, stdout, stderr: '' };
}

/** Runs the command as from a shell: not under npm, and with no other folder for compiled code. */
function bss(checkout: string, ...args: string[]) {
  const { promise, resolve } = Promise.withResolvers<object>();
  const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`;
  execFile(join(checkout, 'bss'), args, { env: { PATH } }, (error, stdout, stderr) =>
    resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
  );
  return promise;
}
