import type { Readable } from 'node:stream';
import { unzipped } from '#test/support/http/unzipped.ts';
import { ZipFile } from 'yazl';
import { expect, test } from 'vitest';
import { hasChangedName, withKeptName } from '#src/features/webdriver/upload-name.ts';

/** A zip with one file, as Selenium's clients send it. */
async function zipOf(name: string, content: string): Promise<Buffer> {
  const zip = new ZipFile();
  // yazl takes no backslash and no control character: they are put in afterwards.
  const safe = name.replaceAll(/[\\\n]/g, '#');
  zip.addBuffer(Buffer.from(content), safe);
  zip.end();
  const bytes = Buffer.concat(await (zip.outputStream as Readable).toArray());
  for (let at = bytes.indexOf(safe); at !== -1; at = bytes.indexOf(safe, at + 1))
    bytes.write(name, at);
  return bytes;
}
const bodyOf = (base64: string) => Buffer.from(JSON.stringify({ file: base64 }));

const filesIn = (body: string) => unzipped((JSON.parse(body) as { file: string }).file);

test.each([
  ['a"b".txt', 'a_b_.txt'],
  ['ab:c*d?.txt', 'ab_c_d_.txt'],
  ['<a>|\\b', '_a___b'],
  ['M\u00fcller "1".txt', 'M\u00fcller _1_.txt'],
  ['a\nb', 'a_b'],
])('what chromedriver would replace in %j is _', async (name, kept) => {
  const zip = (await zipOf(name, 'PK "hello"')).toString('base64');
  const lines = zip.replaceAll(/.{20}/g, '$&\n');
  for (const body of [bodyOf(zip), bodyOf(lines), bodyOf(zip.replaceAll('/', '\\/'))]) {
    const plain = Buffer.from(body.toString().replaceAll('\\\\/', '\\/'));
    expect(hasChangedName(plain)).toBe(true);
    expect(await filesIn(withKeptName(plain) ?? '')).toEqual([[kept, 'PK "hello"']]);
  }
});

test.each([['a b.txt'], ["it's.txt"], ['M\u00fcller.txt'], ['\u{1f600}'], ['a;b&c$d%20']])(
  'a name that chromedriver keeps is left alone: %s',
  async (name) => {
    expect(hasChangedName(bodyOf((await zipOf(name, '"*?')).toString('base64')))).toBe(false);
  },
);

test('what is no upload is left to chromedriver', () => {
  for (const text of ['', 'x', '{}', '{"file":1}', '{"file":"x"}', '{"file":"UEsDBA=="}']) {
    expect(hasChangedName(Buffer.from(text))).toBe(false);
    expect(withKeptName(Buffer.from(text))).toBeNull();
  }
});
