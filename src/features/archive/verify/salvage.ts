import { Readable } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';

/** Small, so that little of what was decompressed before a failure is lost with it. */
const CHUNK_BYTES = 512;

/** What of a frame's lines can be decompressed: all before the bytes that were altered. */
export async function salvageLines(frame: Buffer): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const output = createZstdDecompress({ chunkSize: CHUNK_BYTES });
  output.on('data', (chunk: Buffer) => chunks.push(chunk));
  await new Promise<void>((resolve) => {
    output.once('end', resolve);
    output.once('error', () => resolve());
    Readable.from([frame]).pipe(output);
  });
  output.destroy();
  return Buffer.concat(chunks);
}

/**
 * Cuts a stream into zstd frames by their own headers, for data whose index cannot be trusted. From
 * a malformed header on, all that was read is one piece, the last.
 */
export async function* walkFrames(
  stream: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, void> {
  let rest = Buffer.alloc(0);
  for await (const chunk of stream) {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const length = frameLength(rest);
      if (length === 'malformed') return yield rest;
      if (length === 'unfinished') break;
      yield rest.subarray(0, length);
      rest = rest.subarray(length);
    }
  }
  if (rest.length > 0) yield rest;
}

const MAGIC = 0xfd2fb528;
const BLOCK_HEADER_BYTES = 3;

/** Bytes of the frame at the start of a buffer, by RFC 8878. */
function frameLength(bytes: Buffer): number | 'unfinished' | 'malformed' {
  if (bytes.length < 5) return 'unfinished';
  if (bytes.readUInt32LE(0) !== MAGIC) return 'malformed';
  const descriptor = bytes.readUInt8(4);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const contentSize = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  const dictionaryId = [0, 1, 2, 4][descriptor & 3] ?? 0;
  let at = 5 + (isSingleSegment ? 0 : 1) + dictionaryId + contentSize;
  for (let isLast = false; !isLast;) {
    if (at + BLOCK_HEADER_BYTES > bytes.length) return 'unfinished';
    const header = bytes.readUIntLE(at, BLOCK_HEADER_BYTES);
    isLast = (header & 1) === 1;
    const type = (header >> 1) & 3;
    if (type === 3) return 'malformed';
    // A block of one repeated byte has that byte alone.
    at += BLOCK_HEADER_BYTES + (type === 1 ? 1 : header >> 3);
  }
  const end = at + ((descriptor & 4) === 0 ? 0 : 4);
  return end > bytes.length ? 'unfinished' : end;
}
