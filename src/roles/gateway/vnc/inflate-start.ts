/**
 * The first four bytes of what is compressed with zlib (RFC 1950 and 1951), and no more of it: 512
 * bytes may be half a megabyte, of which `node:zlib` gives all or none.
 *
 * Only the first block is read, as a block may be empty, and reading its head is the most work.
 */

/** Codes of one block: how many have each length, and what they stand for, in their order. */
type Codes = { counts: Uint16Array; symbols: Uint16Array };
/** Bytes that are read bit by bit, from the lowest of each on; `at` is the next bit. */
type Bits = { bytes: Buffer; at: number };

const WORD_BYTES = 4;
const CODE_BITS_MAX = 15;
const END_OF_BLOCK = 256;
/** The order in which a head has the lengths of the codes that the other lengths are written in. */
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const LITERALS_MAX = 288;
const FIXED_LITERALS = codesOf(
  Uint8Array.from({ length: LITERALS_MAX }, (_, symbol) => {
    if (symbol < 144) return 8;
    if (symbol < END_OF_BLOCK) return 9;
    return symbol < 280 ? 7 : 8;
  }),
);
const FIXED_DISTANCES = codesOf(new Uint8Array(32).fill(5));

/** @returns the number of these four bytes; null: the first block has fewer, or is no deflate */
export function inflateUInt32BE(zlib: Buffer): number | null {
  const bits = { bytes: zlib, at: 0 };
  const method = take(bits, 8);
  const flags = take(bits, 8);
  const hasDictionary = (flags & 0x20) !== 0;
  if ((method & 0x0f) !== 8 || (method * 256 + flags) % 31 !== 0 || hasDictionary) return null;
  take(bits, 1); // whether it is the last block
  switch (take(bits, 2)) {
    case 0:
      return storedWord(zlib);
    case 1:
      return wordOf(bits, FIXED_LITERALS, () => FIXED_DISTANCES);
    case 2: {
      const head = headOf(bits);
      return head && wordOf(bits, codesOf(head.literals), () => codesOf(head.distances));
    }
    default:
      return null;
  }
}

/** Beyond the last byte all bits are 0. */
function take(bits: Bits, count: number): number {
  let value = 0;
  for (let bit = 0; bit < count; bit += 1, bits.at += 1) {
    const at = bits.at >> 3;
    if (at < bits.bytes.length) value |= (((bits.bytes[at] ?? 0) >> (bits.at & 7)) & 1) << bit;
  }
  return value;
}

function isOver(bits: Bits): boolean {
  return bits.at > bits.bytes.length * 8;
}

/** After the two bytes of zlib and the one with the block's type: a length, twice. */
function storedWord(zlib: Buffer): number | null {
  const start = 3 + 4;
  if (zlib.length < start + WORD_BYTES || zlib.readUInt16LE(3) < WORD_BYTES) return null;
  return zlib.readUInt32BE(start);
}

/** The lengths of a block's own codes. */
function headOf(bits: Bits): { literals: Uint8Array; distances: Uint8Array } | null {
  const literals = take(bits, 5) + 257;
  const distances = take(bits, 5) + 1;
  const given = take(bits, 4) + 4;
  const ofLengths = new Uint8Array(ORDER.length);
  for (let at = 0; at < given; at += 1) ofLengths[ORDER[at] ?? 0] = take(bits, 3);
  const codes = codesOf(ofLengths);
  const lengths = new Uint8Array(literals + distances);
  for (let at = 0; at < lengths.length;) {
    const symbol = symbolOf(bits, codes);
    if (symbol === null || isOver(bits)) return null;
    if (symbol <= CODE_BITS_MAX) {
      lengths[at] = symbol;
      at += 1;
    } else {
      const previous = symbol === 16 ? (lengths[at - 1] ?? 0) : 0;
      const end = at + repeats(symbol, bits);
      lengths.fill(previous, at, end);
      at = end;
    }
  }
  return { literals: lengths.subarray(0, literals), distances: lengths.subarray(literals) };
}

function repeats(symbol: number, bits: Bits): number {
  if (symbol === 16) return 3 + take(bits, 2);
  return symbol === 17 ? 3 + take(bits, 3) : 11 + take(bits, 7);
}

function codesOf(lengths: Uint8Array): Codes {
  const counts = new Uint16Array(CODE_BITS_MAX + 1);
  for (const length of lengths) counts[length] = (counts[length] ?? 0) + 1;
  counts[0] = 0;
  const next = new Uint16Array(CODE_BITS_MAX + 2);
  for (let length = 1; length <= CODE_BITS_MAX; length += 1)
    next[length + 1] = (next[length] ?? 0) + (counts[length] ?? 0);
  const symbols = new Uint16Array(lengths.length);
  for (let symbol = 0; symbol < lengths.length; symbol += 1) {
    const length = lengths[symbol] ?? 0;
    if (length === 0) continue;
    const at = next[length] ?? 0;
    symbols[at] = symbol;
    next[length] = at + 1;
  }
  return { counts, symbols };
}

/** Reads one code, from its highest bit on. @returns what it stands for; null: it is none */
function symbolOf(bits: Bits, { counts, symbols }: Codes): number | null {
  let code = 0;
  let first = 0;
  let at = 0;
  for (let length = 1; length <= CODE_BITS_MAX; length += 1) {
    code += take(bits, 1);
    const count = counts[length] ?? 0;
    if (code < first + count) return symbols[at + code - first] ?? null;
    at += count;
    first = (first + count) * 2;
    code *= 2;
  }
  return null;
}

function wordOf(bits: Bits, literals: Codes, distancesOf: () => Codes): number | null {
  const word = Buffer.alloc(WORD_BYTES);
  for (let at = 0; at < WORD_BYTES;) {
    const symbol = symbolOf(bits, literals);
    if (symbol === null || symbol === END_OF_BLOCK || isOver(bits)) return null;
    if (symbol < END_OF_BLOCK) {
      word[at] = symbol;
      at += 1;
      continue;
    }
    // A repetition has three bytes or more of what is there: it completes the word.
    take(bits, extraBitsOf(symbol));
    const distance = symbolOf(bits, distancesOf());
    if (distance === null || distance >= at || isOver(bits)) return null;
    for (; at < WORD_BYTES; at += 1) word[at] = word[at - distance - 1] ?? 0;
  }
  return word.readUInt32BE();
}

/** Of the length of a repetition. */
function extraBitsOf(symbol: number): number {
  return symbol < 265 || symbol >= 285 ? 0 : Math.floor((symbol - 261) / 4);
}
