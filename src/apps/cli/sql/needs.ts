import type { DuckDBConnection, StatementType } from '@duckdb/node-api';
import { lock, openDatabase } from './database.ts';
import { describeError, QueryRefused } from './errors.ts';
import { eventColumns, tables, type TableName } from './tables.ts';

/** What a query reads: the rest need not be loaded. */
export type Needs = {
  tables: ReadonlySet<TableName>;
  /** Columns of `events` that the query itself reads; those of the other tables are not named. */
  columns: ReadonlySet<string>;
};

const everything: Needs = {
  tables: new Set(tables.map(({ name }) => name)),
  columns: new Set(eventColumns.map(({ name }) => name)),
};

/**
 * Checks a query on empty tables, where it can reach nothing, and finds what it reads.
 * @throws QueryRefused
 */
export async function needsOf(query: string): Promise<Needs> {
  await using database = await openDatabase(null);
  const { connection } = database;
  // The plan of a query on empty tables would be empty, too.
  await connection.run("SET disabled_optimizers = 'statistics_propagation,empty_result_pullup'");
  await lock(database);
  const type = await statementTypeOf(connection, query);
  if (type === 'EXPLAIN') return everything;
  const plan = await planOf(connection, query);
  return plan === null ? everything : needsOfPlan(plan);
}

async function statementTypeOf(connection: DuckDBConnection, query: string) {
  const { StatementType: types } = await import('@duckdb/node-api');
  const reads: readonly StatementType[] = [types.SELECT, types.EXPLAIN];
  try {
    const statements = await connection.extractStatements(query);
    if (statements.count !== 1) throw new QueryRefused('one query is needed, not several or none');
    const { statementType } = await statements.prepare(0);
    if (!reads.includes(statementType))
      throw new QueryRefused('only queries are accepted: SELECT, WITH, FROM, DESCRIBE, EXPLAIN');
    return statementType === types.EXPLAIN ? 'EXPLAIN' : 'SELECT';
  } catch (error) {
    throw error instanceof QueryRefused ? error : new QueryRefused(describeError(error, query));
  }
}

type PlanNode = {
  name: string;
  children: readonly PlanNode[];
  extra_info: Readonly<Record<string, unknown>>;
};

/** The query's plan; null if DuckDB does not show one. */
async function planOf(connection: DuckDBConnection, query: string): Promise<PlanNode[] | null> {
  try {
    const shown = await connection.runAndReadAll(`EXPLAIN (FORMAT JSON) ${query}`);
    return JSON.parse(String(shown.getRows()[0]?.[1])) as PlanNode[];
  } catch {
    return null;
  }
}

function needsOfPlan(plan: readonly PlanNode[]): Needs {
  const found = { tables: new Set<TableName>(), columns: new Set<string>() };
  const visit = ({ children, extra_info: info }: PlanNode): void => {
    const name = textOf(info['Table']).split('.').at(-1);
    const table = tables.find((one) => one.name === name);
    if (table !== undefined) found.tables.add(table.name);
    // A column that only a filter reads is not among the projections.
    const words = JSON.stringify(info).match(/\w+/g) ?? [];
    if (table?.name === 'events')
      for (const word of words) if (everything.columns.has(word)) found.columns.add(word);
    children.forEach(visit);
  };
  plan.forEach(visit);
  return found;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
