import { createHash } from 'node:crypto';
import type { LogRecord } from '#src/event-store/raw-records.ts';

/**
 * The file of an audit, NDJSON. The first line is the signed head, every other one a record of the
 * log: `{"prev":…,"hash":…,"record":{…}}`. `hash` is the SHA-256 of `prev` and of the record's text
 * as it stands in the line, `prev` the hash of the line above; that of the first one comes of what
 * is audited (`beginOf`). No byte of a line is outside of it.
 */
export type AuditScope = {
  format: 'bss-audit-1';
  /** Id of the log: one that was made anew in its place has another. */
  log: string;
  /** null: of all organizations, and the fleet. */
  organization: string | null;
  /** ISO 8601 UTC by the log's clock; null: from the first record on. */
  from: string | null;
  /** Not included. */
  to: string;
  /** The sequences that lie between the two: behind `after`, up to and including `up_to`. */
  after: number;
  up_to: number;
};

/** What is signed. */
export type AuditHead = AuditScope & {
  exported_at: string;
  records: number;
  /** The hash of the last line; with no line, `begin` of the scope. */
  tip: string;
};

export function beginOf(scope: AuditScope): string {
  const { format, log, organization, from, to, after, up_to } = scope;
  return sha256('', JSON.stringify([format, log, organization, from, to, after, up_to]));
}

export function sha256(prev: string, text: string | Buffer): string {
  return createHash('sha256').update(prev).update(text).digest('hex');
}

/** A line without its line feed, and the hash that the next one begins with. */
export function lineOf(prev: string, record: string): { line: string; hash: string } {
  const hash = sha256(prev, record);
  return { line: `{"prev":"${prev}","hash":"${hash}","record":${record}}`, hash };
}

const BEFORE_RECORD = '{"prev":"","hash":"","record":'.length + 128;
const LINE = /^\{"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})","record":$/;

/** Takes a line apart; null where it is none. The record's bytes are those that were hashed. */
export function readLine(line: Buffer): { prev: string; hash: string; record: Buffer } | null {
  const [, prev, hash] = LINE.exec(line.subarray(0, BEFORE_RECORD).toString('latin1')) ?? [];
  if (prev === undefined || hash === undefined || line.at(-1) !== 0x7d) return null;
  return { prev, hash, record: line.subarray(BEFORE_RECORD, -1) };
}

/**
 * A record as the text of a line. A body that is JSON stands as it is stored, byte by byte; another
 * one as a text.
 */
export function recordText({ sequence, storedAt, subject, headers, body }: LogRecord): string {
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
