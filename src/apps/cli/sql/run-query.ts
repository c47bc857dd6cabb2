import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lock, openDatabase, type Database } from './database.ts';
import { describeError, QueryRefused } from './errors.ts';
import { countForeignStates, deriveTables, loadFiles, selectionOf } from './load.ts';
import { needsOf } from './needs.ts';
import { recordFiles, type Range, type Sources } from './record-files.ts';
import { toPlain, type Plain } from './values.ts';

export type QueryOptions = {
  range: Range;
  /** Rows of the result that are returned, at most. */
  limit: number;
  signal?: AbortSignal;
  /** Called with the records loaded so far. */
  onLoaded?: (records: number) => void;
};

export type QueryResult = {
  columns: readonly { name: string; type: string }[];
  rows: readonly (readonly Plain[])[];
  /** Whether the query has more rows. */
  isCut: boolean;
  /** Records that were loaded, and sequences of the range that neither source holds. */
  loaded: number;
  missing: number;
  /** Events whose state is null because another version of the fold wrote it. */
  foreignStates: number;
};

/**
 * Answers a query over archive and event store, in a database of its own that is removed again.
 * @throws QueryRefused, CorruptSegment, Unavailable
 */
export async function runQuery(
  query: string,
  sources: Sources,
  { range, limit, signal, onLoaded }: QueryOptions,
): Promise<QueryResult> {
  const needs = await needsOf(query);
  await using folder = await temporaryFolder();
  await using database = await openDatabase(folder.path);
  const interrupt = () => database.connection.interrupt();
  signal?.addEventListener('abort', interrupt);
  try {
    let loaded = 0;
    if (needs.tables.size > 0) {
      const selection = selectionOf(needs);
      for await (const files of recordFiles(sources, range, folder.path)) {
        signal?.throwIfAborted();
        await loadFiles(database, files, selection, range);
        loaded += files.records;
        onLoaded?.(loaded);
      }
      await deriveTables(database, needs);
    }
    const missing = needs.tables.size > 0 ? range.upTo - range.after - loaded : 0;
    const foreignStates = await countForeignStates(database, needs);
    await lock(database);
    signal?.throwIfAborted();
    return { ...(await answer(database, query, limit)), loaded, missing, foreignStates };
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', interrupt);
  }
}

async function answer({ connection }: Database, query: string, limit: number) {
  try {
    const result = await connection.stream(query);
    const names = result.deduplicatedColumnNames();
    const types = result.columnTypes().map((type) => type.alias ?? String(type));
    const columns = names.map((name, at) => ({ name, type: types[at] ?? '' }));
    const rows: Plain[][] = [];
    for await (const batch of result.yieldRows()) {
      for (const row of batch.slice(0, limit + 1 - rows.length))
        rows.push(row.map((value, at) => toPlain(value, types[at] === 'JSON')));
      if (rows.length > limit) break;
    }
    return { columns, rows: rows.slice(0, limit), isCut: rows.length > limit };
  } catch (error) {
    throw new QueryRefused(describeError(error, query));
  }
}

async function temporaryFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'bss-sql-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
