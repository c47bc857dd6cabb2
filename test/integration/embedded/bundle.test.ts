import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  buildBundle,
  findBundle,
  holdBundle,
  programFile,
} from '#src/start/embedded/build/bundle.mjs';
import { scratchDir } from '#test/support/scratch.ts';

const TOP = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);
/** A time that a file can be given without loss. */
const TIME = new Date('2026-11-01T00:00:00Z');
/** A program in the place of each entry of the bundle. */
const PROGRAMS = [
  'src/main.ts',
  'src/apps/cli/bss.ts',
  'src/roles/gateway/bidi/bidi-program.ts',
  'src/features/profiles/list-contents.ts',
  'src/browsers/extensions/extension-program.ts',
  'src/start/archive/read-back.worker.ts',
];

test('a program of the bundle says the same as its source: places, lazy parts, lines of errors', async () => {
  await using checkout = await smallCheckout();
  const [main, part] = ['src/main.ts', 'src/part.ts'].map((name) => join(checkout.path, name));
  await writeFile(
    main ?? '',
    [
      'type Erased = {',
      '  only: string;',
      '};',
      "import facts from '../package.json' with { type: 'json' };",
      'console.log(import.meta.url, new URL("./beside.txt", import.meta.url).href, facts.private);',
      "const { fail } = await import('./part.ts');",
      "fail({ only: 'late' } satisfies Erased);",
    ].join('\n'),
  );
  await writeFile(
    part ?? '',
    [
      'export function fail({ only }: { only: string }): never {',
      '  const { stack } = new Error(only);',
      '  console.log(stack?.split("\\n").slice(0, 3).join("\\n"));',
      '  process.exit(3);',
      '}',
    ].join('\n'),
  );
  const folder = await buildBundle(checkout.path, () => undefined);
  const [source, bundled] = await Promise.all([
    said(main ?? ''),
    said(programFile(folder, 'src/main.ts')),
  ]);
  expect(bundled).toEqual(source);
  expect(source.stdout).toMatch(/part\.ts:2:21\)\n.*main\.ts:7:1/);
});

test('a changed source has a bundle of its own; of old ones three stay, and those in use', async () => {
  await using checkout = await smallCheckout();
  const folders: string[] = [];
  for (const round of [0, 1, 2, 3, 4]) {
    await writeFile(join(checkout.path, 'src/main.ts'), `console.log(${round});`);
    expect(findBundle(checkout.path)).toBe(null);
    folders.push(await buildBundle(checkout.path, () => undefined));
    expect(findBundle(checkout.path)).toBe(folders[round]);
    if (round === 0) await holdBundle(folders[0] ?? '');
  }
  expect(folders.map((folder) => existsSync(folder))).toEqual([true, false, true, true, true]);
  expect(await said(programFile(folders[4] ?? '', 'src/main.ts'))).toMatchObject({ stdout: '4\n' });
});

test('a source that changes without another size or time has no bundle, at the next call', async () => {
  await using checkout = await smallCheckout();
  const main = join(checkout.path, 'src/main.ts');
  await writeFile(main, '1;');
  // What has just changed is hashed each time; from a minute later it has not.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 });
  onTestFinished(() => void vi.useRealTimers());
  const folder = await buildBundle(checkout.path, () => undefined);
  await utimes(main, TIME, TIME);
  expect(findBundle(checkout.path)).toBe(folder);
  expect(existsSync(join(checkout.path, '.tools/service.known'))).toBe(true);
  await writeFile(main, '2;');
  await utimes(main, TIME, TIME);
  expect(findBundle(checkout.path)).toBe(null);
  await writeFile(main, '1;');
  expect(findBundle(checkout.path)).toBe(folder);
});

test('where it cannot be built, the reason is thrown and there is none', async () => {
  await using checkout = await smallCheckout();
  await writeFile(join(checkout.path, 'src/main.ts'), "import './missing.ts';");
  await expect(buildBundle(checkout.path, () => undefined)).rejects.toThrow(/missing\.ts/);
  expect(findBundle(checkout.path)).toBe(null);
});

test('a first start builds dashboard and bundle in other processes, and runs the bundle', async () => {
  await using checkout = await smallCheckout();
  for (const name of [
    'tsconfig.json',
    'LICENSE',
    'src/apps/dashboard',
    'src/kernel/history',
    'src/features/recordings',
    'src/roles/api/dashboard',
    'src/kernel/async',
  ])
    await cp(join(TOP, name), join(checkout.path, name), { recursive: true });
  // The library that Vite builds with is a file that the system maps.
  const maps = "readFileSync('/proc/self/maps', 'utf8').includes('rolldown')";
  await writeFile(
    join(checkout.path, 'src/main.ts'),
    `import { readFileSync } from 'node:fs'; console.log(${maps}, import.meta.filename);`,
  );
  const { stdout } = await start(checkout.path);
  expect(stdout).toBe(`false ${programFile(findBundle(checkout.path) ?? '', 'src/main.ts')}\n`);
  expect(existsSync(join(checkout.path, '.tools/dashboard/index.html'))).toBe(true);
});

test('where neither can be built, a start says why and runs the source', async () => {
  await using checkout = await smallCheckout();
  await writeFile(join(checkout.path, '.tools'), 'a file in the place of the folder');
  const main = join(checkout.path, 'src/main.ts');
  await writeFile(main, 'console.log(import.meta.filename);');
  const { stdout, stderr } = await start(checkout.path);
  expect(stdout).toBe(`${main}\n`);
  expect(stderr).toMatch(/^The service runs from its sources, as it could not be bundled: E/m);
  expect(stderr).toMatch(/^The dashboard could not be built: E/m);
});

function start(root: string) {
  return run(process.execPath, [join(root, 'src/start/embedded/launch.mjs'), 'start']);
}

/** A checkout whose programs are empty, with the builder and the packages of this one. */
async function smallCheckout() {
  const folder = await scratchDir();
  await cp(join(TOP, 'package.json'), join(folder.path, 'package.json'));
  await cp(join(TOP, 'package-lock.json'), join(folder.path, 'package-lock.json'));
  await cp(join(TOP, 'src/start/embedded'), join(folder.path, 'src/start/embedded'), {
    recursive: true,
  });
  for (const name of [...PROGRAMS, 'events/events.ts', 'projections/projection.ts']) {
    await mkdir(join(folder.path, name, '..'), { recursive: true });
    await writeFile(join(folder.path, name), '');
  }
  await symlink(join(TOP, 'node_modules'), join(folder.path, 'node_modules'));
  return folder;
}

/** What a program prints, and how it ends. */
async function said(file: string): Promise<{ code: number; stdout: string }> {
  const { stdout, code } = await run(process.execPath, [file]).then(
    (ended) => ({ ...ended, code: 0 }),
    (error: { stdout: string; code: number }) => error,
  );
  return { code, stdout };
}
