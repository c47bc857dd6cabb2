/**
 * A segment of a recording, inflated: a header and the RFB messages that the screen's server sent,
 * each with its time. It runs in the service, in the command line and in the page that plays it.
 *
 * Header, 24 bytes, big-endian: `BSSREC`, version (1), flags (bit 0: begins with the whole screen),
 * width and height of the screen in pixels (two bytes each), four bytes of zero, and the time of
 * its first message in milliseconds since the epoch (eight bytes). Then for each message: the
 * milliseconds since that time (four bytes), its length (four bytes), and a FramebufferUpdate
 * (RFC 6143, 7.6.1) with pixels of 32 bits: red, green, blue, and a byte without meaning.
 */
export type Segment = SegmentHead & { messages: SegmentMessage[] };
export type SegmentHead = {
  width: number;
  height: number;
  /** True: the first message has the whole screen. */
  full: boolean;
  /** Milliseconds since the epoch. */
  startedAt: number;
};
/** `at`: milliseconds since the epoch. */
export type SegmentMessage = { at: number; bytes: Uint8Array };

export const SEGMENT_HEAD_BYTES = 24;
export const MESSAGE_HEAD_BYTES = 8;
const MAGIC = new TextEncoder().encode('BSSREC');
const VERSION = 1;

/** The beginning of a segment. */
export function segmentHead({ width, height, full, startedAt }: SegmentHead): Uint8Array {
  const bytes = new Uint8Array(SEGMENT_HEAD_BYTES);
  bytes.set([...MAGIC, VERSION, full ? 1 : 0]);
  const view = new DataView(bytes.buffer);
  view.setUint16(8, width);
  view.setUint16(10, height);
  view.setBigUint64(16, BigInt(startedAt));
  return bytes;
}

/** What comes before a message. @param afterMs milliseconds since the segment's start */
export function messageHead(afterMs: number, length: number): Uint8Array {
  const bytes = new Uint8Array(MESSAGE_HEAD_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, afterMs);
  view.setUint32(4, length);
  return bytes;
}

/** Reads an inflated segment. @throws Error where it is none, or is cut off */
export function readSegment(bytes: Uint8Array): Segment {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isSegment =
    bytes.length >= SEGMENT_HEAD_BYTES &&
    MAGIC.every((byte, index) => bytes[index] === byte) &&
    bytes[6] === VERSION;
  if (!isSegment) throw new Error('not a segment of a recording that this version can read');
  const startedAt = Number(view.getBigUint64(16));
  const messages: SegmentMessage[] = [];
  for (let at = SEGMENT_HEAD_BYTES; at < bytes.length;) {
    if (at + MESSAGE_HEAD_BYTES > bytes.length) throw new Error('the segment is cut off');
    const length = view.getUint32(at + 4);
    const begin = at + MESSAGE_HEAD_BYTES;
    if (begin + length > bytes.length) throw new Error('the segment is cut off');
    const message = bytes.subarray(begin, begin + length);
    messages.push({ at: startedAt + view.getUint32(at), bytes: message });
    at = begin + length;
  }
  const full = ((bytes[7] ?? 0) & 1) === 1;
  return { width: view.getUint16(8), height: view.getUint16(10), full, startedAt, messages };
}
