import type { DuckDBConnection } from '@duckdb/node-api';
import { withPackages } from '#src/kernel/optional-package.ts';
import { createTables, quote } from './tables.ts';

/** A database, closed at its disposal. */
export type Database = { connection: DuckDBConnection } & AsyncDisposable;

/** Beyond it DuckDB writes to its temporary folder. */
const MEMORY_MAX = '1GB';
/** DuckDB comes with all that is needed; it shall not fetch anything. */
const options = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
};

/**
 * Opens a database with the empty tables.
 * @param folder where it and what does not fit into memory are written; null: all in memory
 */
export async function openDatabase(folder: string | null): Promise<Database> {
  // 68 MB of native code, which no other command needs.
  const { DuckDBInstance } = await withPackages(
    ['@duckdb/node-api'],
    'bss sql',
    () => import('@duckdb/node-api'),
  );
  const path = folder === null ? ':memory:' : `${folder}/events.duckdb`;
  const more = folder === null ? {} : { storage_compatibility_version: 'latest' };
  const instance = await DuckDBInstance.create(path, {
    ...options,
    ...more,
    memory_limit: MEMORY_MAX,
    temp_directory: folder === null ? '' : `${folder}/spilled`,
    // Rows may be written by several threads, each in its own order.
    preserve_insertion_order: 'false',
  });
  const connection = await instance.connect();
  for (const statement of createTables()) await connection.run(statement);
  return {
    connection,
    async [Symbol.asyncDispose]() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/** From now on no statement reaches a file, the network or the settings. */
export async function lock({ connection }: Database): Promise<void> {
  await connection.run('SET enable_external_access = false');
  await connection.run('SET lock_configuration = true');
}

/** The files as an argument of `read_json`. */
export function fileList(paths: readonly string[]): string {
  return `[${paths.map(quote).join(', ')}]`;
}
