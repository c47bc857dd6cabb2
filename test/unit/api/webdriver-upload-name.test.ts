import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { unzipped } from '#test/support/http/unzipped.ts';
import { ZipFile } from 'yazl';
import { expect, test } from 'vitest';
import { withKeptName } from '#src/features/webdriver/upload-name.ts';

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

/** What goes on of a body that comes in such pieces. */
async function passed(body: Buffer, pieceBytes = 1_000): Promise<Buffer> {
  async function* pieces() {
    for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes);
  }
  return Buffer.concat(await Array.fromAsync(withKeptName(pieces(), body.length)));
}

/** As clients write it: as one, in lines, with escapes. */
function bodiesOf(zip: Buffer): Buffer[] {
  const one = bodyOf(zip.toString('base64'));
  const lines = bodyOf(zip.toString('base64').replaceAll(/.{60}/g, '$&\n'));
  const escaped = Buffer.from(one.toString().replaceAll('/', '\\/'));
  return [one, lines, escaped, Buffer.from(lines.toString().replaceAll('/', '\\/'))];
}

test.each([
  ['a"b".txt', 'a_b_.txt'],
  ['ab:c*d?.txt', 'ab_c_d_.txt'],
  ['<a>|\\b', '_a___b'],
  ['M\u00fcller "1".txt', 'M\u00fcller _1_.txt'],
  ['a\nb', 'a_b'],
])('what chromedriver would replace in %j is _', async (name, kept) => {
  for (const body of bodiesOf(await zipOf(name, 'PK "hello"'))) {
    const sent = await passed(body);
    expect(sent).toHaveLength(body.length);
    expect(await filesIn(sent.toString())).toEqual([[kept, 'PK "hello"']]);
    const { file } = JSON.parse(sent.toString()) as { file: string };
    // In neither of its two places.
    expect(Buffer.from(file, 'base64').includes(name)).toBe(false);
  }
});

test('a large file is renamed as it comes, wherever its pieces begin', async () => {
  // Incompressible, and of other lengths: the end of the body begins anywhere in a line or escape.
  for (const bytes of [1, 2, 3, 4, 5, 6, 7].map((more) => 300_000 + more)) {
    const content = randomBytes(bytes).toString('latin1');
    for (const body of bodiesOf(await zipOf('a"b".bin', content))) {
      const sent = await passed(body, 60_001);
      expect(sent).toHaveLength(body.length);
      expect(await filesIn(sent.toString())).toEqual([['a_b_.bin', content]]);
    }
  }
});

test('of a file no more than its beginning and end are held', async () => {
  const body = bodyOf(
    (await zipOf('a?b', randomBytes(2_000_000).toString('latin1'))).toString('base64'),
  );
  let [given, taken, most] = [0, 0, 0];
  async function* pieces() {
    for (let at = 0; at < body.length; at += 10_000) {
      const piece = body.subarray(at, at + 10_000);
      given += piece.length;
      most = Math.max(most, given - taken);
      yield piece;
    }
  }
  for await (const piece of withKeptName(pieces(), body.length)) taken += piece.length;
  expect(taken).toBe(body.length);
  expect(most).toBeLessThanOrEqual(300_000);
});

test.each([['a b.txt'], ["it's.txt"], ['M\u00fcller.txt'], ['\u{1f600}'], ['a;b&c$d%20']])(
  'a name that chromedriver keeps is left alone: %s',
  async (name) => {
    for (const body of bodiesOf(await zipOf(name, '"*?'))) expect(await passed(body)).toEqual(body);
  },
);

test('what is no upload is left to chromedriver', async () => {
  const zip = await zipOf('a"b', 'x');
  const cut = bodyOf(zip.subarray(0, zip.length - 30).toString('base64')).toString();
  for (const text of ['', 'x', '{}', '{"file":1}', '{"file":"x"}', '{"file":"UEsDBA=="}'])
    expect((await passed(Buffer.from(text))).toString()).toBe(text);
  // Its name is in the beginning alone: chromedriver finds no zip.
  const sent = await passed(Buffer.from(cut));
  expect(sent).toHaveLength(cut.length);
  expect(JSON.parse(sent.toString())).toEqual({ file: expect.any(String) });
});
