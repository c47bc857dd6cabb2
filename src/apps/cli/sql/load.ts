import { fileList, type Database } from './database.ts';
import type { Needs } from './needs.ts';
import type { RecordFiles } from './record-files.ts';
import { eventColumns, fillLedger, fillSessions, quote, tables, type Column } from './tables.ts';

/** What of each record is loaded. */
export type Selection = {
  /** Columns of `events`; the others stay null. */
  columns: ReadonlySet<string>;
  /** Kinds of aggregates; null: all. */
  kinds: readonly string[] | null;
  /** `data` and `state` are most of an event: the kinds that need them; null: all. */
  bodies: Readonly<Record<string, readonly string[] | null>>;
};

/** What the tables that the query names are made of. */
export function selectionOf({ tables: named, columns }: Needs): Selection {
  const derived = tables.flatMap(({ name, reads }) =>
    named.has(name) && reads !== null ? [reads] : [],
  );
  const kindsReading = (body: string) => {
    if (columns.has(body)) return null;
    return derived.filter(({ columns }) => columns.includes(body)).map(({ kind }) => kind);
  };
  return {
    columns: new Set([...columns, ...derived.flatMap((reads) => reads.columns)]),
    kinds: named.has('events') ? null : derived.map(({ kind }) => kind),
    bodies: { data: kindsReading('data'), state: kindsReading('state') },
  };
}

/** Loads the lines of files into `events`. */
export async function loadFiles(
  { connection }: Database,
  files: RecordFiles,
  selection: Selection,
  { after, upTo }: { after: number; upTo: number },
): Promise<void> {
  const wanted = eventColumns.map((column) => expressionOf(column, selection));
  const { kinds } = selection;
  const conditions = [
    `sequence > ${after} AND sequence <= ${upTo}`,
    ...(kinds === null ? [] : [`kind IN (${kinds.map(quote).join(', ')})`]),
  ];
  await connection.run(
    `INSERT INTO events SELECT ${wanted.join(', ')} FROM (${recordsOf(files, wanted.join())})
     WHERE ${conditions.join(' AND ')}`,
  );
}

function expressionOf({ name, from }: Column, { columns, bodies }: Selection): string {
  if (!columns.has(name)) return 'NULL';
  const kinds = bodies[name] ?? null;
  if (kinds === null) return from;
  return `CASE WHEN kind IN (${kinds.map(quote).join(', ')}) THEN ${from} END`;
}

/** The records of the files with the parts that the expressions name: others are not parsed. */
function recordsOf({ paths, isCompressed }: RecordFiles, expressions: string): string {
  const uses = (part: string) => new RegExp(`\\b${part}\\b`).test(expressions);
  const body = [
    ...(uses('data') ? ['data JSON'] : []),
    ...(uses('state') ? ['state JSON', '"stateVersion" BIGINT'] : []),
  ];
  const record = [
    'sequence BIGINT',
    '"storedAt" VARCHAR',
    'subject VARCHAR',
    ...(uses('headers') ? ['headers VARCHAR[][]'] : []),
    ...(body.length === 0 ? [] : [`body STRUCT(${body.join(', ')})`]),
  ];
  const parts = [
    'record.sequence AS sequence',
    'record."storedAt" AS stored_at',
    ...(uses('headers') ? ['record.headers AS headers'] : []),
    ...(uses('data') ? ['record.body.data AS data'] : []),
    ...(uses('state')
      ? ['record.body.state AS state', 'record.body."stateVersion" AS state_version']
      : []),
    "string_split(record.subject, '.') AS parts",
    "CASE parts[1] WHEN 'evt' THEN parts[3] ELSE parts[2] END AS kind",
  ];
  // A body that is no JSON object leaves its columns null.
  return `SELECT ${parts.join(', ')} FROM read_json(${fileList(paths)},
    format = 'newline_delimited', compression = '${isCompressed ? 'zstd' : 'uncompressed'}',
    ignore_errors = true, columns = {record: 'STRUCT(${record.join(', ')})'})`;
}

/** Makes the other tables that the query names. */
export async function deriveTables({ connection }: Database, needs: Needs): Promise<void> {
  if (needs.tables.has('sessions')) await connection.run(fillSessions());
  if (needs.tables.has('ledger')) await connection.run(fillLedger());
}

/** Events of derived tables whose state another version of the fold wrote. */
export async function countForeignStates(
  { connection }: Database,
  { tables: named }: Needs,
): Promise<number> {
  const kinds = [...named].filter((name) => name !== 'events').map((name) => kindOf(name));
  if (kinds.length === 0) return 0;
  const counted = await connection.runAndReadAll(
    `SELECT count(*) FROM events
     WHERE aggregate_kind IN (${kinds.map(quote).join(', ')}) AND state IS NULL`,
  );
  return Number(counted.getRows()[0]?.[0]);
}

function kindOf(name: string): string {
  return tables.find((table) => table.name === name)?.reads?.kind ?? '';
}
