import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress, createZstdDecompress } from 'node:zlib';
import { ArchiveDamaged } from './sealed.ts';

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

const LENGTH_BYTES = 4;
/** Some thousands of cookies, and the local storage of open pages. */
const HEAD_BYTES_MAX = 16 * 1024 ** 2;

/** Compresses an archive. @throws ProfileTooLarge for a tar of more than `bytesMax` */
export async function* pack({ live, tar }: Archive, bytesMax: number) {
  async function* plain(): AsyncGenerator<Uint8Array> {
    const head = Buffer.from(JSON.stringify({ live }));
    if (head.length > HEAD_BYTES_MAX) throw new ProfileTooLarge(HEAD_BYTES_MAX);
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(head.length);
    yield Buffer.concat([length, head]);
    yield* limited(tar, bytesMax);
  }
  yield* through(plain(), createZstdCompress());
}

/** @throws ArchiveDamaged; its tar throws ProfileTooLarge */
export async function unpack(
  source: AsyncIterable<Uint8Array>,
  bytesMax: number,
): Promise<Archive> {
  const plain = through(source, createZstdDecompress())[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  async function take(bytes: number): Promise<Buffer> {
    while (held.length < bytes) {
      const next = await plain.next();
      if (next.done === true) throw new ArchiveDamaged('it has no tar');
      held = Buffer.concat([held, next.value]);
    }
    const taken = held.subarray(0, bytes);
    held = held.subarray(bytes);
    return taken;
  }
  const length = (await take(LENGTH_BYTES)).readUInt32BE();
  if (length > HEAD_BYTES_MAX) throw new ArchiveDamaged('its head is too long');
  const { live } = JSON.parse((await take(length)).toString()) as Pick<Archive, 'live'>;
  async function* tar(): AsyncGenerator<Uint8Array> {
    if (held.length > 0) yield held;
    for (let next = await plain.next(); next.done !== true; next = await plain.next())
      yield next.value;
  }
  return { live, tar: limited(tar(), bytesMax) };
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

/** What the source yields, through a stream that changes it. */
async function* through(
  source: AsyncIterable<Uint8Array>,
  stream: NodeJS.ReadWriteStream & AsyncIterable<Buffer | string>,
): AsyncGenerator<Buffer> {
  const flowing = pipeline(Readable.from(source, { objectMode: false }), stream);
  // The reader of the stream gets its error.
  flowing.catch(() => undefined);
  for await (const chunk of stream) yield chunk as Buffer;
  await flowing;
}
