import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { readExtension } from '#src/browsers/extensions/read-extension.ts';
import {
  BadExtension,
  FILES_MAX,
  readFiles,
  UNPACKED_BYTES_MAX,
} from '#src/browsers/extensions/zip.ts';
import { crxOf, extensionZip, MANIFEST, renamed } from '#test/support/extensions/extension-zip.ts';

test('an extension has the name and version of its manifest, and the id of its bytes', async () => {
  const zip = await extensionZip();
  const sha256 = createHash('sha256').update(zip).digest('hex');
  const read = await readExtension(zip);
  const id = `ext_${sha256.slice(0, 32)}`;
  expect(read).toEqual({ extensionId: id, name: 'Marker', version: '1.2', sha256, zip });
  const files = await Array.fromAsync(readFiles(zip));
  expect(files.map(({ path }) => path)).toEqual(['manifest.json', 'code/mark.js']);
});

test('a CRX is the zip in it, so it has the same id', async () => {
  const zip = await extensionZip();
  const { extensionId } = await readExtension(zip);
  const read = await readExtension(crxOf(zip));
  expect(read.extensionId).toBe(extensionId);
  expect(read.zip.equals(zip)).toBe(true);
});

test('what the store has added is left out: Chromium refuses it', async () => {
  const zip = await extensionZip(MANIFEST, { '_metadata/verified_contents.json': '[]', a: 'a' });
  const files = await Array.fromAsync(readFiles(zip));
  expect(files.map(({ path }) => path)).toEqual(['manifest.json', 'a']);
});

test('a name that is a message is that of the extension’s own language', async () => {
  const manifest = { ...MANIFEST, name: '__MSG_appName__', default_locale: 'de' };
  const messages = (message: string) => JSON.stringify({ appname: { message } });
  const files = {
    '_locales/en/messages.json': messages('Tick'),
    '_locales/de/messages.json': messages('Häkchen'),
  };
  expect((await readExtension(await extensionZip(manifest, files))).name).toBe('Häkchen');
  expect((await readExtension(await extensionZip(manifest, {}))).name).toBe('__MSG_appName__');
});

test.each([
  ['nothing', async () => Buffer.alloc(0), /not a zip/],
  ['something else', async () => Buffer.from('<html>'), /not a zip/],
  ['half a zip', async () => (await extensionZip()).subarray(0, 100), /not a zip/],
  ['an old CRX', async () => crxOf(await extensionZip(), 2), /another version than 3/],
  ['half a CRX', async () => Buffer.from('Cr24'), /another version than 3/],
  ['no manifest', async () => renamed(await extensionZip(), 'manifest', 'manifets'), /has no man/],
  ['a manifest that is not JSON', () => extensionZip('{'), /not a JSON object/],
  ['a manifest that is a list', () => extensionZip('[]'), /not a JSON object/],
  ['version 2', () => extensionZip({ ...MANIFEST, manifest_version: 2 }), /version is not 3/],
  ['no name', () => extensionZip({ ...MANIFEST, name: ' ' }), /name is missing/],
  ['no version', () => extensionZip({ ...MANIFEST, version: 'one' }), /version is not one to/],
  ['a way out', async () => renamed(await zipOf('aa/evil'), 'aa/evil', '../evil'), /relative path/],
  ['an absolute name', async () => renamed(await zipOf('aevil'), 'aevil', '/evil'), /absolute/],
  ['a control character', async () => renamed(await zipOf('aXb'), 'aXb', 'a\u0001b'), /allowed/],
  ['an empty segment', async () => renamed(await zipOf('aX/b'), 'aX/b', 'a//b'), /allowed/],
  ['a long segment', () => zipOf('a'.repeat(201)), /not allowed/],
  ['too deep', () => zipOf(`${'a/'.repeat(32)}a`), /not allowed/],
  ['a name twice', () => zipOf('a', 'A'), /twice/],
  ['a file in a file', async () => renamed(await zipOf('ab', 'aX/c'), 'aX/c', 'ab/c'), /twice/],
  ['a link', () => extensionZip(MANIFEST, { a: '/etc/passwd' }, { a: 0o120777 }), /symbolic link/],
])('%s is refused, with what is wrong', async (_, upload, reason) => {
  const refused = readExtension(await upload());
  await expect(refused).rejects.toThrow(BadExtension);
  await expect(refused).rejects.toThrow(reason);
});

test('more files than a browser needs are refused', async () => {
  const files = Object.fromEntries(Array.from({ length: FILES_MAX }, (_, at) => [`f${at}`, '']));
  await expect(readExtension(await extensionZip(MANIFEST, files))).rejects.toThrow(/more than/);
});

test('a small zip that unpacks to much is refused before it is unpacked', async () => {
  const zip = await extensionZip(MANIFEST, { a: Buffer.alloc(UNPACKED_BYTES_MAX) });
  expect(zip.length).toBeLessThan(200_000);
  await expect(readExtension(zip)).rejects.toThrow(/unpacks to more/);
});

test('a zip that claims less than it unpacks to is refused', async () => {
  const zip = await extensionZip(MANIFEST, { a: Buffer.alloc(1_000_000) });
  // The size is in the local header and in the directory.
  const [real, claimed] = [Buffer.alloc(4), Buffer.alloc(4)];
  real.writeUInt32LE(1_000_000);
  claimed.writeUInt32LE(10);
  const lying = renamed(zip, real.toString('latin1'), claimed.toString('latin1'));
  expect(lying.equals(zip)).toBe(false);
  await expect(readExtension(lying)).rejects.toThrow(/not a zip that can be read/);
});

function zipOf(...paths: string[]): Promise<Buffer> {
  return extensionZip(MANIFEST, Object.fromEntries(paths.map((path) => [path, 'x'])));
}
