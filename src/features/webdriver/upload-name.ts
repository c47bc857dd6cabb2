/**
 * The name of an uploaded file. A client sends a zip of one file in base64, which chromedriver
 * unpacks; of a name it replaces quotes and others by U+FFFD, and servers refuse such a name. Here
 * they are replaced by `_` before, as in every name of a session's files.
 */

const LOCAL = { signature: 0x04034b50, nameLengthAt: 26, nameAt: 30 };
const CENTRAL = { signature: 0x02014b50, nameLengthAt: 28, nameAt: 46 };
const END = { signature: Buffer.from('PK\u0005\u0006', 'latin1'), sizeAt: 12, bytes: 22 };
/** What chromedriver replaces; each is one byte, of UTF-8 too. */
const REPLACED = new Set(Buffer.from('"*:<>?\\|', 'latin1'));
const CONTROL_MAX = 0x1f;
const SUBSTITUTE = '_'.charCodeAt(0);
/** The beginning of a body has the file's name whole, and little of the file. */
const BEGINNING_BYTES = 4_096;
/** The end has the name again: behind it is a comment of at most 64 KiB, in base64. */
const END_BYTES = 128 * 1024;
/** Clients write base64 in lines, or as one. */
const BODY = /^(\s*\{\s*"file"\s*:\s*")((?:[A-Za-z0-9+/=]|\\n|\\r|\\\/)*)/;
const WRITTEN = /[A-Za-z0-9+/=\\]/;
/** In base64 so many characters are whole bytes. */
const GROUP = 4;

/**
 * The body of an upload with a name that chromedriver keeps, as it arrives; what is no upload is
 * left as it is. Never more than its beginning and end are held.
 * @param bytes its length, which it keeps
 */
export async function* withKeptName(
  body: AsyncIterable<Buffer>,
  bytes: number,
): AsyncGenerator<Buffer, void, void> {
  let held: Buffer = Buffer.alloc(0);
  /** Null: its beginning has not come. */
  let isChanged: boolean | null = null;
  let sent = 0;
  for await (const piece of body) {
    if (isChanged === false) {
      yield piece;
      continue;
    }
    held = Buffer.concat([held, piece]);
    if (isChanged === null && held.length >= Math.min(BEGINNING_BYTES, bytes)) {
      const begun = withLocalName(held.subarray(0, BEGINNING_BYTES));
      isChanged = begun !== null;
      if (begun !== null) held = Buffer.concat([begun, held.subarray(BEGINNING_BYTES)]);
      else {
        yield held;
        held = held.subarray(0, 0);
      }
    }
    // As much again before it goes, or each small piece would move all of it.
    if (isChanged !== true || held.length < 2 * END_BYTES) continue;
    const whole = held.subarray(0, held.length - END_BYTES);
    held = held.subarray(whole.length);
    sent += whole.length;
    yield whole;
  }
  if (isChanged !== true) return;
  const end = withCentralName(held.toString('latin1'));
  // Behind JSON there may be any number of blanks.
  yield Buffer.from(end.padEnd(bytes - sent), 'latin1');
}

/** Null: chromedriver keeps the name. */
function withLocalName(beginning: Buffer): Buffer | null {
  const text = beginning.toString('latin1');
  const [all = '', before = '', written = ''] = BODY.exec(text) ?? [];
  const base64 = plain(written);
  const whole = base64.length - (base64.length % GROUP);
  const zip = Buffer.from(base64.slice(0, whole), 'base64');
  if (!keepName(zip, 0, LOCAL)) return null;
  const rest = base64.slice(whole) + text.slice(all.length);
  return Buffer.from(before + zip.toString('base64') + rest, 'latin1');
}

/** @param text the end of a body, or all of it */
function withCentralName(text: string): string {
  const quote = text.lastIndexOf('"');
  let from = quote;
  while (from > 0 && WRITTEN.test(text.charAt(from - 1))) from -= 1;
  // What it begins with may be the second half of an escape; its last group is a whole one.
  if (from === 0) from = 1;
  while (from < quote && !isWhole(text, from, quote)) from += 1;
  const zip = Buffer.from(plain(text.slice(from, quote)), 'base64');
  const end = zip.lastIndexOf(END.signature);
  if (end === -1 || end + END.bytes > zip.length) return text;
  const central = end - zip.readUInt32LE(end + END.sizeAt);
  if (!keepName(zip, central, CENTRAL)) return text;
  return text.slice(0, from) + zip.toString('base64') + text.slice(quote);
}

function isWhole(text: string, from: number, quote: number): boolean {
  return text[from - 1] !== '\\' && plain(text.slice(from, quote)).length % GROUP === 0;
}

/** Without the escapes of JSON. */
function plain(written: string): string {
  return written.replaceAll(/\\[nr]/g, '').replaceAll('\\/', '/');
}

/** Changes the name in a header of the zip; false: chromedriver keeps it, or no header is there. */
function keepName(zip: Buffer, at: number, header: typeof LOCAL): boolean {
  if (at < 0 || at + header.nameAt > zip.length || zip.readUInt32LE(at) !== header.signature)
    return false;
  const start = at + header.nameAt;
  const name = zip.subarray(start, start + zip.readUInt16LE(at + header.nameLengthAt));
  const isChanged = name.some(isReplaced);
  for (const [index, byte] of name.entries()) if (isReplaced(byte)) name[index] = SUBSTITUTE;
  return isChanged;
}

function isReplaced(byte: number): boolean {
  return byte <= CONTROL_MAX || REPLACED.has(byte);
}
