import { hash } from 'node:crypto';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';

/**
 * Records as chained lines, the format of audits and of the archive's segments:
 * `{"prev":…,"hash":…,"record":{…}}`. `hash` is the SHA-256 of `prev` and the record's bytes in the
 * line, `prev` the hash of the line above. The hash covers every byte of a line.
 */

export function sha256(prev: string, text: string | Buffer): string {
  const all = typeof text === 'string' ? prev + text : Buffer.concat([Buffer.from(prev), text]);
  return hash('sha256', all, 'hex');
}

/** A line without its line feed, and its hash, the next line's `prev`. */
export function chainLine(prev: string, record: string): { line: string; hash: string } {
  const hash = sha256(prev, record);
  return { line: `${lineStart(prev, hash)}${record}}`, hash };
}

/** The text of a line before its record. */
export function lineStart(prev: string, hash: string): string {
  return `{"prev":"${prev}","hash":"${hash}","record":`;
}

/** Bytes of a line before its record. */
export const BEFORE_RECORD = lineStart('', '').length + 128;
const LINE = /^\{"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})","record":$/;

/** Parses a line; null if it is malformed. The record's bytes are the hashed ones. */
export function readLine(line: Buffer): { prev: string; hash: string; record: Buffer } | null {
  const [, prev, hash] = LINE.exec(line.subarray(0, BEFORE_RECORD).toString('latin1')) ?? [];
  if (prev === undefined || hash === undefined || line.at(-1) !== 0x7d) return null;
  return { prev, hash, record: line.subarray(BEFORE_RECORD, -1) };
}

export const BODY = ',"body":';
const TEXT = ',"text":';

/**
 * A record as JSON text. A JSON body is included byte for byte as it is stored, any other body as a
 * string.
 */
export function recordText({ sequence, storedAt, subject, headers, body }: RawRecord): string {
  const head = JSON.stringify({ sequence, storedAt, subject, headers }).slice(0, -1);
  return isJson(body) ? `${head}${BODY}${body}}` : `${head}${TEXT}${JSON.stringify(body)}}`;
}

function isJson(body: string): boolean {
  // A lone surrogate has no bytes of its own in UTF-8; as a JSON string it is escaped.
  if (/[\r\n]/.test(body) || !body.isWellFormed()) return false;
  try {
    JSON.parse(body);
    return true;
  } catch {
    return false;
  }
}

/**
 * The record of a line: the inverse of `recordText`, with the body's bytes as they stood.
 * @throws SyntaxError if it is not the text of a record
 */
export function parseRecord(bytes: Buffer): RawRecord {
  const text = bytes.toString();
  // Neither can stand in a subject or header: JSON escapes the quotes of a string.
  const isJson = text.indexOf(']' + BODY);
  const at = isJson === -1 ? text.indexOf(']' + TEXT) : isJson;
  if (at === -1) throw new SyntaxError('it is not a record');
  const head = JSON.parse(`${text.slice(0, at + 1)}}`) as Omit<RawRecord, 'body'>;
  const rest = text.slice(at + 1 + BODY.length, -1);
  return { ...head, body: isJson === -1 ? (JSON.parse(rest) as string) : rest };
}
