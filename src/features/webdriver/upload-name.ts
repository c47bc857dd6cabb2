import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';

/**
 * The name of an uploaded file. A client sends a zip of one file in base64, which chromedriver
 * unpacks; of a name it replaces quotes and others by U+FFFD, and servers refuse such a name. Here
 * they are replaced by `_` before, as in every name of a session's files.
 */

const LOCAL = { signature: 0x04034b50, nameLengthAt: 26, nameAt: 30 };
const CENTRAL = { signature: 0x02014b50, nameLengthAt: 28, nameAt: 46 };
const END = Buffer.from('PK\u0005\u0006', 'latin1');
const CENTRAL_OFFSET_AT = 16;
/** What chromedriver replaces; each is one byte, of UTF-8 too. */
const REPLACED = new Set(Buffer.from('"*:<>?\\|', 'latin1'));
const CONTROL_MAX = 0x1f;
const SUBSTITUTE = '_'.charCodeAt(0);
/** Of a body: it has the whole name of the file, and little of the file. */
export const BEGINNING_BYTES = 4_096;
const BODY_BYTES_MAX = 32 * 1024 * 1024;
/** Clients write base64 in lines, or as one. */
const BODY = /^\s*\{\s*"file"\s*:\s*"((?:[A-Za-z0-9+/=]|\\n|\\r|\\\/)*)/;

/** Whether a body begins with a zip whose name chromedriver would change. */
export function hasChangedName(beginning: Buffer): boolean {
  const [, written = ''] = BODY.exec(beginning.toString('latin1')) ?? [];
  const zip = Buffer.from(written.replaceAll(/\\[nr]/g, '').replaceAll('\\/', '/'), 'base64');
  return [...nameOf(zip, 0, LOCAL)].some(isReplaced);
}

/** The body with the name that is kept; null: it is none that a client sends. */
export function withKeptName(body: Buffer): string | null {
  const file = fileOf(body);
  if (file === null) return null;
  const zip = Buffer.from(file, 'base64');
  const end = zip.lastIndexOf(END);
  if (end === -1 || end + CENTRAL_OFFSET_AT + 4 > zip.length) return null;
  const central = zip.readUInt32LE(end + CENTRAL_OFFSET_AT);
  for (const name of [nameOf(zip, 0, LOCAL), nameOf(zip, central, CENTRAL)])
    for (const [index, byte] of name.entries()) if (isReplaced(byte)) name[index] = SUBSTITUTE;
  return JSON.stringify({ file: zip.toString('base64') });
}

function fileOf(body: Buffer): string | null {
  try {
    const { file } = parseForeignJson(body, { bytesMax: BODY_BYTES_MAX }) as { file?: unknown };
    return typeof file === 'string' ? file : null;
  } catch {
    return null;
  }
}

/** The bytes of a name, in the zip itself; none where no such header stands there. */
function nameOf(zip: Buffer, at: number, header: typeof LOCAL): Buffer {
  if (at + header.nameAt > zip.length || zip.readUInt32LE(at) !== header.signature)
    return zip.subarray(0, 0);
  const start = at + header.nameAt;
  return zip.subarray(start, start + zip.readUInt16LE(at + header.nameLengthAt));
}

function isReplaced(byte: number): boolean {
  return byte <= CONTROL_MAX || REPLACED.has(byte);
}
