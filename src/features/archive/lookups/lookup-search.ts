import type { ArchiveFiles } from '../archive-files.ts';
import type { ByteCache } from '../byte-cache.ts';
import { readBlocks } from './lookup-files.ts';
import { BLOCK_BYTES, BLOCK_ENTRIES, type ProvenEntries } from '../read-index.ts';
import { aggregateHash, ENTRY_BYTES, lastWhere, writeEntry } from '../segment-index.ts';

/** A frame that has records of the aggregate, or of another one with the same hash. */
export type Place = { segment: number; frame: number };

/** Guesses before the search halves its range: an aggregate with many entries spoils them. */
const GUESSES_MAX = 6;
const HASH_BYTES = 8;

/** Finds entries in tables by ranged reads of a few blocks. */
export class LookupSearch {
  readonly #files: ArchiveFiles;
  readonly #cache: ByteCache;

  constructor(files: ArchiveFiles, cache: ByteCache) {
    this.#files = files;
    this.#cache = cache;
  }

  /** The places of an aggregate from one on, ascending. @throws FileMissing */
  async *ascending(table: ProvenEntries, prefix: string, from: Place) {
    const key = keyOf(prefix, from);
    for (let at = await this.#position(table, key); at < table.entries; at += 1) {
      const place = await this.#placeAt(table, at, key);
      if (place === null) return;
      yield place;
    }
  }

  /** The places of an aggregate up to and with one, descending. @throws FileMissing */
  async *descending(table: ProvenEntries, prefix: string, upTo: Place) {
    const key = keyOf(prefix, { segment: upTo.segment, frame: upTo.frame + 1 });
    for (let at = (await this.#position(table, key)) - 1; at >= 0; at -= 1) {
      const place = await this.#placeAt(table, at, key);
      if (place === null) return;
      yield place;
    }
  }

  /** The place of an entry; null if it is of another hash. */
  async #placeAt(table: ProvenEntries, at: number, key: Buffer): Promise<Place | null> {
    const block = await this.#block(table, Math.floor(at / BLOCK_ENTRIES));
    const start = (at % BLOCK_ENTRIES) * ENTRY_BYTES;
    if (block.compare(key, 0, HASH_BYTES, start, start + HASH_BYTES) !== 0) return null;
    return { segment: block.readUInt32BE(start + 8), frame: block.readUInt32BE(start + 12) };
  }

  /**
   * The number of entries less than the key. Hashes are uniform: the place is guessed between the
   * two known ends, and each block that was read becomes an end.
   */
  async #position(table: ProvenEntries, key: Buffer): Promise<number> {
    let [low, high] = [0, table.entries];
    let [least, most] = [0, 2 ** 64];
    const wanted = valueOf(key, 0);
    for (let guesses = 0; low < high; guesses += 1) {
      const part = guesses < GUESSES_MAX && most > least ? (wanted - least) / (most - least) : 0.5;
      const guess = low + Math.floor(Math.min(Math.max(part, 0), 1) * (high - low - 1));
      const number = Math.floor(guess / BLOCK_ENTRIES);
      const block = await this.#block(table, number);
      const isLess = (at: number) =>
        block.compare(key, 0, ENTRY_BYTES, at * ENTRY_BYTES, (at + 1) * ENTRY_BYTES) < 0;
      const count = block.length / ENTRY_BYTES;
      const start = number * BLOCK_ENTRIES;
      if (isLess(count - 1)) {
        low = start + count;
        least = valueOf(block, count - 1);
      } else if (isLess(0)) {
        return start + lastWhere(count, isLess) + 1;
      } else {
        high = start;
        most = valueOf(block, 0);
      }
    }
    return low;
  }

  #block(table: ProvenEntries, number: number): Promise<Buffer> {
    return this.#cache.get(
      `${table.name}:${number}`,
      () => BLOCK_BYTES,
      () => readBlocks(this.#files, table, { first: number, count: 1 }),
    );
  }
}

function keyOf(prefix: string, { segment, frame }: Place): Buffer {
  const key = Buffer.alloc(ENTRY_BYTES);
  writeEntry(key, 0, aggregateHash(prefix), [segment, frame]);
  return key;
}

/** The hash of an entry as a double; equal for few others. */
function valueOf(entries: Buffer, at: number): number {
  const place = at * ENTRY_BYTES;
  return entries.readUInt32BE(place) * 2 ** 32 + entries.readUInt32BE(place + 4);
}
