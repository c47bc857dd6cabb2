import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';
import { recordText } from '#src/kernel/event-store/chain.ts';

/**
 * The recorded life of a session, one JSON document: every stored event of the session, of the
 * browsers that served it, and of its organization's ledger as far as it names the session.
 */
export type Life = {
  sessionId: string;
  organizationId: string;
  /** Id of the event store; sequences of another store mean something else. */
  eventStoreId: string;
  exportedAt: string;
  /** In the order of the event store. */
  records: readonly RawRecord[];
  /**
   * The ledger's record before each of the session's, if that is not among `records`: its state is
   * the one that the session's record changed.
   */
  ledgerBefore: readonly RawRecord[];
};

const FORMAT = 'bss-life-1';

/** The document: a line for each record, whose body is included byte for byte as it is stored. */
export function lifeText(life: Life): string {
  const head = JSON.stringify({
    format: FORMAT,
    session_id: life.sessionId,
    organization_id: life.organizationId,
    event_store: life.eventStoreId,
    exported_at: life.exportedAt,
  });
  const [records, before] = [linesOf(life.records), linesOf(life.ledgerBefore)];
  return `${head.slice(0, -1)},"records":${records},"ledger_before":${before}}\n`;
}

function linesOf(records: readonly RawRecord[]): string {
  return records.length === 0 ? '[]' : `[\n${records.map(recordText).join(',\n')}\n]`;
}

/** The text is not the recorded life of a session. */
export class NotALife extends Error {
  override readonly name = 'NotALife';
}

/** @throws NotALife */
export function parseLife(text: string): Life {
  const document = parseObject(text);
  if (document['format'] !== FORMAT) throw new NotALife(`it is not of the format ${FORMAT}`);
  const records = readRecords(document, 'records');
  if (records.length === 0) throw new NotALife('it has no records');
  return {
    sessionId: textOf(document, 'session_id'),
    organizationId: textOf(document, 'organization_id'),
    eventStoreId: textOf(document, 'event_store'),
    exportedAt: textOf(document, 'exported_at'),
    records,
    ledgerBefore: readRecords(document, 'ledger_before'),
  };
}

type Fields = Record<string, unknown>;

function parseObject(text: string): Fields {
  try {
    const parsed: unknown = JSON.parse(text);
    if (isFields(parsed)) return parsed;
  } catch {
    // The reason is the same.
  }
  throw new NotALife('it is not a JSON object');
}

function readRecords(document: Fields, field: string): RawRecord[] {
  const records = document[field];
  if (!Array.isArray(records)) throw new NotALife(`${field} is not a list`);
  return records.map((record: unknown, at) => {
    if (!isFields(record)) throw new NotALife(`${field}[${at}] is not a record`);
    const { sequence, headers } = record;
    if (typeof sequence !== 'number' || !Array.isArray(headers) || !headers.every(isHeader))
      throw new NotALife(`${field}[${at}] is not a record`);
    const body = 'text' in record ? textOf(record, 'text') : JSON.stringify(record['body'] ?? null);
    return {
      sequence,
      headers,
      body,
      storedAt: textOf(record, 'storedAt'),
      subject: textOf(record, 'subject'),
    };
  });
}

function textOf(fields: Fields, field: string): string {
  const value = fields[field];
  if (typeof value !== 'string') throw new NotALife(`${field} is missing`);
  return value;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

function isHeader(value: unknown): value is [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((at) => typeof at === 'string');
}
