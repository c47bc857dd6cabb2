import { mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DOWNLOADS_FOLDER } from '#src/browsers/link/downloads-folder.ts';
import type { BrowserSpec } from '#src/browsers/browsers.ts';
import { folderBytes } from '#src/browsers/process/folder-bytes.ts';
import { createProcessFolders } from '#src/browsers/process/folders.ts';
import { fillFolder } from '#src/browsers/process/browser-folder.ts';
import { scratchDir } from '#test/support/scratch.ts';

/** The browser's user owns its folder: whatever it puts there, this process stays in it. */

const signal = new AbortController().signal;
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;

/** A browser's folder with a file, beside one of somebody else with files of the same names. */
async function opened(path: string) {
  const [own, others] = [join(path, 'own'), join(path, 'others')];
  for (const folder of [own, others]) {
    await mkdir(join(folder, DOWNLOADS_FOLDER), { recursive: true });
    await writeFile(join(folder, DOWNLOADS_FOLDER, 'kept'), folder === own ? 'mine' : 'secret');
  }
  const folders = createProcessFolders(() => own, undefined);
  return { own, others, folders };
}

async function* body() {
  yield Buffer.from('planted');
}
const file = { bytes: 7, body: body() };

type Opened = Awaited<ReturnType<typeof opened>>;
const replacements: [string, (opened: Opened) => Promise<void>][] = [
  [
    'the downloads folder',
    async ({ own, others }) => {
      await rename(join(own, DOWNLOADS_FOLDER), join(own, 'moved'));
      await symlink(join(others, DOWNLOADS_FOLDER), join(own, DOWNLOADS_FOLDER));
    },
  ],
  [
    'the browser’s own folder',
    async ({ own, others }) => {
      await rename(own, `${own}.moved`);
      await symlink(others, own);
    },
  ],
];

test.each(replacements)('%s may be a link: nothing is done where it leads', async (_, replace) => {
  await using scratch = await scratchDir();
  const place = await opened(scratch.path);
  await replace(place);
  const { folders, others } = place;
  expect(await folders.read('wl_1', 'kept', signal)).toBeNull();
  await expect(folders.write('wl_1', 'new', file, signal)).rejects.toThrow(/ELOOP|ENOTDIR/);
  expect(await folders.rename('wl_1', 'kept', 'renamed', signal)).toBe(false);
  await folders.remove('wl_1', 'kept', signal);
  expect(await readdir(join(others, DOWNLOADS_FOLDER))).toEqual(['kept']);
  expect(await readFile(join(others, DOWNLOADS_FOLDER, 'kept'), 'utf8')).toBe('secret');
});

test('a folder that is replaced while a file is written gets nothing of it', async () => {
  await using scratch = await scratchDir();
  const place = await opened(scratch.path);
  async function* slow() {
    yield Buffer.from('first ');
    await replacements[0]?.[1](place);
    yield Buffer.from('second');
  }
  await place.folders.write('wl_1', 'late', { bytes: 12, body: slow() }, signal);
  expect(await readdir(join(place.others, DOWNLOADS_FOLDER))).toEqual(['kept']);
  expect(await readFile(join(place.own, 'moved', 'late'), 'utf8')).toBe('first second');
});

test.runIf(user !== undefined)('a file of another user is not read as the browser’s', async () => {
  await using scratch = await scratchDir();
  const { own } = await opened(scratch.path);
  const folders = createProcessFolders(() => own, user);
  expect(await folders.read('wl_1', 'kept', signal)).toBeNull();
});

test('no folder is counted that a link leads to', async () => {
  await using scratch = await scratchDir();
  const place = await opened(scratch.path);
  await replacements[1]?.[1](place);
  expect(await folderBytes(place.own)).toBe(0);
});

test('folders that are too deep to be a browser’s count as more than one may have', async () => {
  await using scratch = await scratchDir();
  await mkdir(join(scratch.path, ...Array<string>(70).fill('d')), { recursive: true });
  expect(await folderBytes(scratch.path)).toBeGreaterThan(1e12);
});

test('all that is written into a browser’s folder is there before its user can enter it', async () => {
  await using scratch = await scratchDir();
  const folder = join(scratch.path, 'bss-browser-x');
  await mkdir(folder, { mode: 0o700 });
  const ownUid = process.getuid?.() ?? 0;
  const seen: number[] = [];
  const extension = {
    id: `ext_${'ab'.repeat(16)}`,
    async zip(): Promise<never> {
      seen.push((await stat(folder)).uid);
      throw new Error('nothing is unpacked');
    },
  };
  const spec = {
    vncPassword: 'aB3dE6gH',
    extensions: [extension],
    profile: { tar: body(), isKept: true },
    locale: 'sv-SE',
  } as unknown as BrowserSpec;
  const chromium = join(scratch.path, 'chromium');
  await mkdir(join(scratch.path, 'locales'));
  for (const path of [chromium, join(scratch.path, 'locales/en-US.pak')]) await writeFile(path, '');
  const filling = fillFolder(folder, spec, { user, chromium, hasDisplay: true, signal });
  await expect(filling).rejects.toThrow('nothing is unpacked');
  expect(seen).toEqual([ownUid]);
  expect((await readdir(folder)).toSorted()).toEqual(
    [
      'Downloads',
      DOWNLOADS_FOLDER,
      'extensions',
      'locales',
      'profile',
      'vnc-password',
      'xauthority',
      'xkb',
    ]
      .filter((name, at, all) => all.indexOf(name) === at)
      .toSorted(),
  );
  expect((await stat(folder)).uid).toBe(ownUid);
});
