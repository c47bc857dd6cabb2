import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { ArchiveDamaged, readExactly } from './read-exactly.ts';

/** Cookies as CDP's Storage.setCookies takes them. */
export type Cookies = readonly Record<string, unknown>[];

/** The local storage of an origin: names and values. */
export type LocalStorage = { origin: string; items: (readonly [key: string, value: string])[] };

/** What a browser that runs has in memory, and may not have written yet. */
export type LiveState = { cookies: Cookies; localStorage: readonly LocalStorage[] };

/** What a profile's archive holds: a tar of its folder. */
export type Archive = {
  /** Of a copy that was made while the browser ran; null: the folder has everything. */
  live: LiveState | null;
  tar: AsyncIterable<Uint8Array>;
};

/** A profile is larger than it may be. */
export class ProfileTooLarge extends Error {
  override readonly name = 'ProfileTooLarge';
  constructor(bytesMax: number) {
    super(`the profile has more than ${bytesMax} bytes`);
  }
}

/**
 * An archive is compressed in blocks, each of a length and its bytes: the head as JSON, then the
 * tar. Each takes a millisecond; a stream takes four times as long to be read.
 */
const BLOCK_BYTES = 256 * 1024;
const LENGTH_BYTES = 4;
/** Of a block's length; set where compression would have gained nothing. */
const RAW = 0x8000_0000;
/** Some thousands of cookies, and the local storage of open pages. */
const HEAD_BYTES_MAX = 16 * 1024 ** 2;

/** Compresses an archive. @throws ProfileTooLarge for a tar of more than `bytesMax` */
export async function* pack({ live, tar }: Archive, bytesMax: number): AsyncGenerator<Buffer> {
  const head = Buffer.from(JSON.stringify({ live }));
  if (head.length > HEAD_BYTES_MAX) throw new ProfileTooLarge(HEAD_BYTES_MAX);
  yield* block(head);
  let held: Buffer[] = [];
  let length = 0;
  for await (const chunk of limited(tar, bytesMax)) {
    held.push(Buffer.from(chunk));
    length += chunk.length;
    if (length < BLOCK_BYTES) continue;
    const plain = Buffer.concat(held);
    let from = 0;
    for (; plain.length - from >= BLOCK_BYTES; from += BLOCK_BYTES)
      yield* block(plain.subarray(from, from + BLOCK_BYTES));
    held = [plain.subarray(from)];
    length = plain.length - from;
  }
  if (length > 0) yield* block(Buffer.concat(held));
}

function* block(plain: Buffer): Generator<Buffer> {
  const compressed = zstdCompressSync(plain);
  const isSmaller = compressed.length < plain.length;
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(isSmaller ? compressed.length : (plain.length + RAW) >>> 0);
  yield length;
  yield isSmaller ? compressed : plain;
}

/** @throws ArchiveDamaged; its tar throws that, too, and ProfileTooLarge */
export async function unpack(
  source: AsyncIterable<Uint8Array>,
  bytesMax: number,
): Promise<Archive> {
  const reader = readExactly(source);
  const head = await readBlock(reader, HEAD_BYTES_MAX);
  const { live } = JSON.parse(head.toString()) as Pick<Archive, 'live'>;
  async function* tar(): AsyncGenerator<Uint8Array> {
    while (!(await reader.isAtEnd())) yield await readBlock(reader, BLOCK_BYTES);
  }
  return { live, tar: limited(tar(), bytesMax) };
}

async function readBlock(
  reader: ReturnType<typeof readExactly>,
  maxOutputLength: number,
): Promise<Buffer> {
  const length = (await reader.take(LENGTH_BYTES)).readUInt32BE();
  const isRaw = length >= RAW;
  const bytes = isRaw ? length - RAW : length;
  if (bytes > maxOutputLength) throw new ArchiveDamaged('a block has no valid length');
  const stored = await reader.take(bytes);
  if (isRaw) return stored;
  try {
    return zstdDecompressSync(stored, { maxOutputLength });
  } catch (error) {
    throw new ArchiveDamaged('a block cannot be decompressed', { cause: error });
  }
}

async function* limited(
  source: AsyncIterable<Uint8Array>,
  bytesMax: number,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new ProfileTooLarge(bytesMax);
    yield chunk;
  }
}
