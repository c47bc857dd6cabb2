import type { RawRecord } from './raw-records.ts';

/**
 * A record whose header and body are the stored bytes. The archive copies them: texts of them would
 * cost more than all the rest of sealing.
 */
export type RecordBytes = Pick<RawRecord, 'sequence' | 'storedAt' | 'subject'> & {
  /** A header block of NATS: its version, lines `name: value`, and an empty line. */
  headers: Uint8Array;
  body: Uint8Array;
};

/** A record in either form. */
export type StoredRecord = RawRecord | RecordBytes;

/** Port: all records of a range. Adapter: jetstream/jetstream-raw-records.ts. */
export type RecordStream = {
  /**
   * The records after `after`, up to and including `upTo`, oldest first, in batches, in the form
   * that costs least.
   * @throws Unavailable('event-log')
   */
  readAll(range: { after: number; upTo: number }): AsyncIterable<StoredRecord[]>;
};

export function isBytes(record: StoredRecord): record is RecordBytes {
  return typeof record.body !== 'string';
}

/** The record with its parts decoded. */
export function rawRecordOf({ headers, body, ...record }: RecordBytes): RawRecord {
  return { ...record, headers: ownHeaders(textOf(headers)), body: textOf(body) };
}

/** UTF-8; bytes that are not become replacement characters. */
export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

/** The server's own headers: a message's position, and an append's expectation. */
const SERVER = 'Nats-';
const LINE_BREAK = '\r\n';

/** The headers of a block in their order, without those of the server. */
export function ownHeaders(block: string): [name: string, value: string][] {
  return headersOf(block).filter(([name]) => !name.startsWith(SERVER));
}

/** All headers of a block in their order. */
export function headersOf(block: string): [name: string, value: string][] {
  const headers: [string, string][] = [];
  for (let start = block.indexOf(LINE_BREAK) + 2, end = 0; ; start = end + 2) {
    end = block.indexOf(LINE_BREAK, start);
    if (end <= start) return headers;
    const colon = block.indexOf(':', start);
    if (colon !== -1 && colon < end)
      headers.push([block.slice(start, colon), block.slice(colon + 1, end).trim()]);
  }
}

const [LINE_FEED, RETURN, SPACE, COLON] = [0x0a, 0x0d, 0x20, 0x3a];
const [QUOTE, COMMA, OPEN, CLOSE] = [0x22, 0x2c, 0x5b, 0x5d];
const SERVER_BYTES = Buffer.from(SERVER);

/** 1 for each byte that is a character of its own and stands for itself in a JSON string. */
const IS_PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= SPACE && byte <= 0x7e && byte !== QUOTE && byte !== 0x5c ? 1 : 0,
);

/** Bytes that `writeHeaders` writes at most: a line of 3 bytes, `a:` and a break, becomes 8. */
export function headersBytesMax(block: Uint8Array): number {
  return 3 * block.length + 2;
}

/**
 * Writes the JSON text of `ownHeaders`, an array of pairs, without decoding the block.
 * @returns the place after it; -1 if the block has other than lines of plain characters
 */
export function writeHeaders(block: Uint8Array, to: Uint8Array, place: number): number {
  let end = place;
  to[end++] = OPEN;
  for (let at = afterLine(block, 0); at < block.length && !isBreak(block, at);) {
    if (at === -1) return -1;
    if (isServers(block, at)) {
      at = afterLine(block, at);
      continue;
    }
    if (end > place + 1) to[end++] = COMMA;
    to[end++] = OPEN;
    to[end++] = QUOTE;
    for (; block[at] !== COLON; at += 1) {
      if (IS_PLAIN[block[at] as number] !== 1) return -1;
      to[end++] = block[at] as number;
    }
    at += 1;
    to[end++] = QUOTE;
    to[end++] = COMMA;
    to[end++] = QUOTE;
    while (block[at] === SPACE) at += 1;
    const valueAt = end;
    for (; IS_PLAIN[block[at] as number] === 1; at += 1) to[end++] = block[at] as number;
    if (!isBreak(block, at)) return -1;
    while (end > valueAt && to[end - 1] === SPACE) end -= 1;
    to[end++] = QUOTE;
    to[end++] = CLOSE;
    at += 2;
  }
  to[end++] = CLOSE;
  return end;
}

/** The place of the next line; -1 if this one has other than plain characters. */
function afterLine(block: Uint8Array, start: number): number {
  let at = start;
  while (IS_PLAIN[block[at] as number] === 1) at += 1;
  if (isBreak(block, at)) return at + 2;
  return block.length === 0 ? 0 : -1;
}

function isBreak(block: Uint8Array, at: number): boolean {
  return block[at] === RETURN && block[at + 1] === LINE_FEED;
}

function isServers(block: Uint8Array, at: number): boolean {
  for (let offset = 0; offset < SERVER_BYTES.length; offset += 1)
    if (block[at + offset] !== SERVER_BYTES[offset]) return false;
  return true;
}
