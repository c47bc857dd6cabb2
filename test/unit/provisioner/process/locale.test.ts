import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeLocaleFolder, withLocale } from '#src/browsers/process/locale.ts';
import { scratchDir } from '#test/support/scratch.ts';

/** A Chromium in a folder, with these files of texts beside it; null: without their folder. */
async function chromiumWith(folder: string, texts: string[] | null): Promise<string> {
  const chromium = join(folder, 'chromium');
  await writeFile(chromium, '');
  if (texts === null) return chromium;
  await mkdir(join(folder, 'locales'));
  for (const name of texts) await writeFile(join(folder, 'locales', `${name}.pak`), name);
  return chromium;
}

test.each([
  ['English, though there are no texts', null, 'en-US'],
  ['a locale whose texts are installed', ['en-US', 'de'], 'de'],
])('%s runs Chromium as it is', async (_, texts, locale) => {
  await using place = await scratchDir();
  const program = await chromiumWith(place.path, texts);
  const wanted = { locale, folder: place.path, user: undefined };
  makeLocaleFolder(program, wanted);
  expect(withLocale({ program, args: ['--x'] }, wanted)).toEqual({ program, args: ['--x'] });
});

test('another locale needs the folder of texts', async () => {
  await using place = await scratchDir();
  const program = await chromiumWith(place.path, null);
  const wanted = { locale: 'sv-SE', folder: place.path, user: undefined };
  expect(() => makeLocaleFolder(program, wanted)).toThrow('pages cannot be in sv-SE');
});
