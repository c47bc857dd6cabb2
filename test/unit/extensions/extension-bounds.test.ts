import { expect, test } from 'vitest';
import { readExtension } from '#src/browsers/extensions/read-extension.ts';
import { BadExtension } from '#src/browsers/extensions/zip.ts';
import { extensionZip, MANIFEST, renamed } from '#test/support/extensions/extension-zip.ts';

/** Uploads that are small, within all limits of a zip, and were made to be dear. */

const KIB = 1024;
/** As much JSON as the service parses at once, of a manifest that is right otherwise. */
const padded = (bytes: number) => JSON.stringify({ ...MANIFEST, x: ' '.repeat(bytes) });
const nested = (depth: number) =>
  JSON.stringify({ ...MANIFEST, x: 0 }).replace(
    '"x":0',
    `"x":${'['.repeat(depth)}${']'.repeat(depth)}`,
  );
const localized = { ...MANIFEST, name: '__MSG_a__', default_locale: 'de' };
const inLocale = (text: string) => ({ '_locales/de/messages.json': text });

/** Another size than it has, in the local header and in the directory. */
function claiming(zip: Buffer, real: number, claimed: number): Buffer {
  const text = (size: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(size);
    return bytes.toString('latin1');
  };
  const lying = renamed(zip, text(real), text(claimed));
  expect(lying.equals(zip)).toBe(false);
  return lying;
}

test.each<[string, () => Promise<Buffer>, RegExp]>([
  [
    'a manifest of a megabyte',
    () => extensionZip(bomb()),
    /manifest\.json has more than 262144 bytes/,
  ],
  [
    'a manifest that claims to be small',
    async () => claiming(await extensionZip(bomb()), BOMB_BYTES, 1_000),
    /not a zip that can be read/,
  ],
  ['a manifest a little too large', () => extensionZip(padded(256 * KIB)), /manifest\.json has/],
  ['a manifest nested deeply', () => extensionZip(nested(100_000)), /nested deeper than 32/],
  ['one nested by objects', () => extensionZip(objects(40)), /nested deeper than 32/],
  [
    'large messages',
    () => extensionZip(localized, inLocale(padded(256 * KIB))),
    /messages\.json h/,
  ],
  [
    'large messages of another language',
    () => extensionZip(MANIFEST, { '_locales/xx/messages.json': bomb() }),
    /_locales\/xx\/messages\.json has/,
  ],
  ['messages nested deeply', () => extensionZip(localized, inLocale(objects(40))), /nested deeper/],
  [
    'hundreds of languages of the greatest size',
    () =>
      extensionZip(
        MANIFEST,
        Object.fromEntries(
          Array.from({ length: 401 }, (_, at) => [`_locales/l${at}/messages.json`, BLANK]),
        ),
      ),
    /unpacks to more than/,
  ],
  [
    'thousands of folders',
    () => extensionZip(MANIFEST, folders(10_000)),
    /more than 10000 entries/,
  ],
  ['two manifests', async () => renamed(await twice(), 'manifestXjson', 'manifest.json'), /twice/],
  [
    'an icon that has another size than it claims',
    async () => claiming(await extensionZip(MANIFEST, { 'icon.png': ICON }), ICON.length, 70_001),
    /not a zip that can be read/,
  ],
])('%s is refused', async (_, made, reason) => {
  const refused = readExtension(await made());
  await expect(refused).rejects.toThrow(BadExtension);
  await expect(refused).rejects.toThrow(reason);
});

test('what is just within the bounds is an extension', async () => {
  const room = 256 * KIB - padded(0).length;
  expect((await readExtension(await extensionZip(padded(room)))).name).toBe('Marker');
  expect((await readExtension(await extensionZip(nested(31)))).name).toBe('Marker');
  const strings = JSON.stringify({ ...MANIFEST, x: `${'['.repeat(100)}"\\` });
  expect((await readExtension(await extensionZip(strings))).name).toBe('Marker');
});

const BOMB_BYTES = KIB ** 2;
const BLANK = Buffer.alloc(256 * KIB, ' ');
const ICON = Buffer.alloc(70_000);

function bomb(): string {
  return '[],'.repeat(BOMB_BYTES / 3 + 1).slice(0, BOMB_BYTES);
}

function objects(depth: number): string {
  return `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
}

function folders(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`_metadata/f${at}`, '']));
}

function twice(): Promise<Buffer> {
  return extensionZip(MANIFEST, { manifestXjson: '{}' });
}
