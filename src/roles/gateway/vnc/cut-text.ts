import { deflateSync } from 'node:zlib';
import { inflateUInt32BE } from './inflate-start.ts';

/**
 * ClientCutText, the clipboard of a viewer: bytes of Latin-1, or the extended form, in which the
 * viewer announces a text, and provides it compressed when the screen requests it.
 *
 * The screen's X server skips what is longer than it takes, and the browser then waits for the
 * announced text until its viewer is gone, and does nothing else. So the gateway has the lower
 * bound, and a text that was announced is answered.
 */

/**
 * The longest text from a viewer, with its end: that of UTF-8 has a NUL. The X server takes 2 MiB
 * (display.ts, entrypoint.sh). A longer text from the browser does not leave the X server either.
 */
export const TEXT_BYTES_MAX = 1024 ** 2;
/** What deflate adds to bytes that it cannot compress, with room to spare. */
const COMPRESSED_BYTES_MAX = TEXT_BYTES_MAX + 4_096;

const FLAGS_BYTES = 4;
const PROVIDE = 0x10_00_00_00;
const TEXT = 1;
/**
 * The first bytes of an extended message that tell the length of its text: a header of deflate has
 * at most some 330, and the length's four bytes come next.
 */
export const START_BYTES_MAX = FLAGS_BYTES + 512;

/** The answer of a viewer that has no text. */
export const NO_TEXT = noText();

/** Whether a message with this in its head is longer than any with a text that is not too long. */
export function isTooLong(length: number): boolean {
  return length < 0 ? -length > COMPRESSED_BYTES_MAX : length > TEXT_BYTES_MAX;
}

/** Whether an extended message that starts so, or is so, provides a text. */
export function providesText(start: Buffer): boolean {
  if (start.length < FLAGS_BYTES) return false;
  const flags = start.readUInt32BE();
  return (flags & PROVIDE) !== 0 && (flags & TEXT) !== 0;
}

/** Whether the text that it provides is too long, or hides its length behind what has none. */
export function hasTooLongText(start: Buffer): boolean {
  if (!providesText(start)) return false;
  const length = inflateUInt32BE(start.subarray(FLAGS_BYTES));
  // The X server closes the connection for less that is no text at all.
  return length === null ? start.length === START_BYTES_MAX : length > TEXT_BYTES_MAX;
}

function noText(): Buffer {
  const text = Buffer.from([0, 0, 0, 1, 0]);
  const compressed = deflateSync(text);
  const head = Buffer.from([6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  head.writeInt32BE(-(FLAGS_BYTES + compressed.length), 4);
  head.writeUInt32BE(PROVIDE + TEXT, 8);
  return Buffer.concat([head, compressed]);
}
