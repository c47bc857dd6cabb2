import { KEY_SEGMENTS_MAX } from '#events/object-subjects.ts';
import type { ByteRange } from './object-store.ts';

/**
 * Keys are `kind/organization/…`: 2 to 6 segments of letters, digits, `_`, `=` and `-`, so that
 * each is a token of a NATS subject. A name that a person chose is never a segment: use a hash of
 * it, or base64url. No key may begin another one as its folder.
 */
const SEGMENT = /^[A-Za-z0-9_=-]{1,200}$/;
const SEGMENTS_MIN = 2;

export function isKey(text: string): boolean {
  const segments = text.split('/');
  const { length } = segments;
  return length >= SEGMENTS_MIN && length <= KEY_SEGMENTS_MAX && segments.every(isSegment);
}

/** @throws RangeError if the text is no key */
export function requireKey(key: string): void {
  if (!isKey(key))
    throw new RangeError(`not a key of an object: ${JSON.stringify(key.slice(0, 300))}`);
}

/** @throws RangeError if no key can begin with the text, or it does not end with `/` */
export function requirePrefix(prefix: string): void {
  const segments = prefix.split('/');
  const isWhole = segments.pop() === '';
  const { length } = segments;
  if (!isWhole || length === 0 || length >= KEY_SEGMENTS_MAX || !segments.every(isSegment))
    throw new RangeError(`not a prefix of keys: ${JSON.stringify(prefix.slice(0, 300))}`);
}

function isSegment(text: string): boolean {
  return SEGMENT.test(text);
}

/** @throws RangeError if the numbers are no range of bytes at all */
export function requireRange(range: ByteRange | undefined): void {
  if (range === undefined) return;
  const { start, end } = range;
  if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end) || start < 0 || end < start)
    throw new RangeError(`not a range of bytes: ${start} to ${end}`);
}

/**
 * The first byte and the one behind the last, within the object.
 * @throws RangeError if the range begins behind the object's end
 */
export function withinObject(range: ByteRange | undefined, bytes: number): [number, number] {
  if (range === undefined) return [0, bytes];
  if (range.start >= bytes) throw new RangeError(`byte ${range.start} of an object of ${bytes}`);
  return [range.start, Math.min(range.end + 1, bytes)];
}
