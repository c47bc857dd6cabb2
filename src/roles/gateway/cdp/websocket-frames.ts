/** The head of a WebSocket frame of a client (RFC 6455, 5.2). */
export type FrameHead = {
  isFinal: boolean;
  /** Compressed by permessage-deflate (RFC 7692); said by a message's first frame. */
  isCompressed: boolean;
  opcode: number;
  mask: Buffer;
  headLength: number;
  /** Of the payload. */
  length: number;
};

/** Close, ping, pong, and what may be defined yet. */
export const FIRST_CONTROL = 8;
const CONTROL_BYTES_MAX = 125;
const FINAL = 0x80;
const COMPRESSED = 0x40;
const OTHER_RESERVED = 0x30;
const MASKED = 0x80;
const MASK_LENGTH = 4;
/** Lengths from here on have two bytes, or eight. */
const TWO_BYTES = 126;
const EIGHT_BYTES = 127;

/** The head of the frame that begins at `at`; null: it is incomplete; `unknown`: no client’s. */
export function frameHead(bytes: Buffer, at: number): FrameHead | null | 'unknown' {
  if (bytes.length < at + 2) return null;
  const first = bytes.readUInt8(at);
  const second = bytes.readUInt8(at + 1);
  if ((first & OTHER_RESERVED) !== 0 || (second & MASKED) === 0) return 'unknown';
  const short = second & ~MASKED;
  const lengthBytes = short === EIGHT_BYTES ? 8 : short === TWO_BYTES ? 2 : 0;
  const headLength = 2 + lengthBytes + MASK_LENGTH;
  if (bytes.length < at + headLength) return null;
  const length = lengthBytes === 0 ? short : lengthAt(bytes, at + 2, lengthBytes);
  if (!Number.isSafeInteger(length)) return 'unknown';
  const opcode = first & 0x0f;
  // RFC 6455, 5.5. Such a frame is held until it is whole.
  if (opcode >= FIRST_CONTROL && length > CONTROL_BYTES_MAX) return 'unknown';
  return {
    isFinal: (first & FINAL) !== 0,
    isCompressed: (first & COMPRESSED) !== 0,
    opcode,
    mask: bytes.subarray(at + headLength - MASK_LENGTH, at + headLength),
    headLength,
    length,
  };
}

function lengthAt(bytes: Buffer, at: number, lengthBytes: 2 | 8): number {
  return lengthBytes === 2 ? bytes.readUInt16BE(at) : Number(bytes.readBigUInt64BE(at));
}

/** A copy of the payload without its mask; the same adds a mask. */
export function unmask(payload: Buffer, mask: Buffer): Buffer {
  const plain = Buffer.allocUnsafe(payload.length);
  const [a = 0, b = 0, c = 0, d = 0] = mask;
  const key = [a, b, c, d];
  for (let n = 0; n < payload.length; n += 1) plain[n] = (payload[n] ?? 0) ^ (key[n & 3] ?? 0);
  return plain;
}

/** A whole, uncompressed message in one frame, as a client sends it. */
export function dataFrame(opcode: number, text: string, mask: Buffer): Buffer {
  const payload = Buffer.from(text);
  const { length } = payload;
  const head =
    length < TWO_BYTES
      ? [length | MASKED]
      : length < 2 ** 16
        ? [TWO_BYTES | MASKED, length >> 8, length & 0xff]
        : [EIGHT_BYTES | MASKED, ...eightBytes(length)];
  return Buffer.concat([Buffer.from([opcode | FINAL, ...head]), mask, unmask(payload, mask)]);
}

function eightBytes(length: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(length));
  return bytes;
}
