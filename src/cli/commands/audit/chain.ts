import { createHash } from 'node:crypto';
import type { RawRecord } from '#src/event-store/raw-records.ts';

/**
 * An audit is an NDJSON file. The first line is the signed head, every other line a stored record:
 * `{"prev":…,"hash":…,"record":{…}}`. `hash` is the SHA-256 of `prev` and the record's bytes in the
 * line, `prev` the hash of the line above. The first record's `prev` is the hash of the scope
 * (`firstHash`). The hash covers every byte of a line.
 */
export type AuditScope = {
  format: 'bss-audit-1';
  /** Id of the event store; a store created anew has another id. */
  log: string;
  /** null: all organizations and the fleet. */
  organization: string | null;
  /** ISO 8601 UTC by the event store's clock; null: from the first record on. */
  from: string | null;
  /** Not included. */
  to: string;
  /** The sequences of the span: above `after`, up to and including `up_to`. */
  after: number;
  up_to: number;
};

/** The signed first line. */
export type AuditHead = AuditScope & {
  exported_at: string;
  records: number;
  /** The hash of the last line; without records, `firstHash` of the scope. */
  tip: string;
};

export function firstHash(scope: AuditScope): string {
  const { format, log, organization, from, to, after, up_to } = scope;
  return sha256('', JSON.stringify([format, log, organization, from, to, after, up_to]));
}

export function sha256(prev: string, text: string | Buffer): string {
  return createHash('sha256').update(prev).update(text).digest('hex');
}

/** A line without its line feed, and its hash, the next line's `prev`. */
export function chainLine(prev: string, record: string): { line: string; hash: string } {
  const hash = sha256(prev, record);
  return { line: `{"prev":"${prev}","hash":"${hash}","record":${record}}`, hash };
}

const BEFORE_RECORD = '{"prev":"","hash":"","record":'.length + 128;
const LINE = /^\{"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})","record":$/;

/** Parses a line; null if it is malformed. The record's bytes are the hashed ones. */
export function readLine(line: Buffer): { prev: string; hash: string; record: Buffer } | null {
  const [, prev, hash] = LINE.exec(line.subarray(0, BEFORE_RECORD).toString('latin1')) ?? [];
  if (prev === undefined || hash === undefined || line.at(-1) !== 0x7d) return null;
  return { prev, hash, record: line.subarray(BEFORE_RECORD, -1) };
}

/**
 * A record as JSON text. A JSON body is included byte for byte as it is stored, any other body as a
 * string.
 */
export function recordText({ sequence, storedAt, subject, headers, body }: RawRecord): string {
  const head = JSON.stringify({ sequence, storedAt, subject, headers }).slice(0, -1);
  return isJson(body) ? `${head},"body":${body}}` : `${head},"text":${JSON.stringify(body)}}`;
}

function isJson(body: string): boolean {
  if (/[\r\n]/.test(body)) return false;
  try {
    JSON.parse(body);
    return true;
  } catch {
    return false;
  }
}
