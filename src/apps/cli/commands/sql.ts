import { reject } from '#src/kernel/errors.ts';
import { sequenceAt } from '#src/kernel/event-store/load-state.ts';
import { integer, parseTimeOrDate } from '../arguments.ts';
import type { Command, CommandSession } from '../command.ts';
import { UsageError } from '../errors.ts';
import { interruptible } from '../interruptible.ts';
import { SQL_ROWS } from '../limits.ts';
import { formatTable, printable } from '../output.ts';
import { createProgressLine, formatNumber } from '../progress-line.ts';
import { QueryRefused } from '../sql/errors.ts';
import type { Range } from '../sql/record-files.ts';
import { runQuery, type QueryResult } from '../sql/run-query.ts';
import type { Plain } from '../sql/values.ts';

const ROWS_MAX = 1_000_000;
/** A longer cell is cut in the table; --json prints all of it. */
const CELL_MAX = 120;

export const queryEvents: Command = {
  read(options) {
    const query = parseQuery(options.operand(0, (text) => text));
    const from = options.optional('from', parseTimeOrDate);
    const to = options.optional('to', parseTimeOrDate);
    const limit = options.optional('limit', integer(1, ROWS_MAX)) ?? SQL_ROWS;
    if (from !== null && to !== null && from > to) throw new UsageError('--from is after --to');
    return async (session) => {
      const archive = await session.openArchive();
      const files = await session.archiveFiles();
      const range = await rangeOf(session, { from, to });
      const total = range.upTo - range.after;
      const progress = createProgressLine(session.isJson);
      const onLoaded = (done: number) =>
        progress.show({ label: 'loading events', done, total, units: done });
      try {
        const result = await interruptible((signal) =>
          runQuery(
            query,
            { archive: { archive, files }, log: session.records },
            { range, limit, signal, onLoaded },
          ),
        );
        progress.end();
        for (const problem of problemsOf(result)) session.warn(problem);
        return { json: presentResult(result), text: formatResult(result) };
      } catch (error) {
        if (!(error instanceof QueryRefused)) throw error;
        return reject('INVALID_REQUEST', {}, { message: error.message });
      } finally {
        progress.end();
      }
    };
  },
};

function parseQuery(text: string): string {
  if (text.trim() === '') throw new UsageError('QUERY is empty');
  return text;
}

/** The sequences of a time span. */
async function rangeOf(
  { context }: CommandSession,
  { from, to }: { from: number | null; to: number | null },
): Promise<Range> {
  const before = (time: number) => sequenceAt(context, time - 1);
  const last = await context.eventStore.lastSequence();
  return {
    after: from === null ? 0 : await before(from),
    upTo: to === null || to >= context.now() ? last : Math.min(last, await before(to)),
  };
}

function problemsOf({ missing, foreignStates }: QueryResult): string[] {
  return [
    ...(missing === 0
      ? []
      : [`${formatNumber(missing)} events are neither in the archive nor in the event store`]),
    ...(foreignStates === 0
      ? []
      : [`${formatNumber(foreignStates)} events have a state of another version, shown as null`]),
  ];
}

function presentResult({ columns, rows, isCut, loaded }: QueryResult) {
  return {
    columns,
    rows: rows.map((row) =>
      Object.fromEntries(columns.map(({ name }, at) => [name, row[at] ?? null])),
    ),
    cut: isCut,
    events_loaded: loaded,
  };
}

function formatResult({ columns, rows, isCut, loaded }: QueryResult): string {
  // A plan is a drawing of several lines.
  if (columns[0]?.name === 'explain_key')
    return rows.map(([, plan]) => printableDrawing(plan ?? null)).join('\n');
  const heads = columns.map(({ name }) => name.toUpperCase());
  const cells = rows.map((row) => row.map(cellOf));
  const count = `${formatNumber(rows.length)} ${rows.length === 1 ? 'row' : 'rows'}`;
  const end = isCut
    ? `the first ${count}; there are more: --limit N prints up to N`
    : `${count}, of ${formatNumber(loaded)} events`;
  return [...formatTable(heads, cells), '', end].join('\n');
}

function printableDrawing(plan: Plain): string {
  return (typeof plan === 'string' ? plan : '').split('\n').map(printable).join('\n').trimEnd();
}

function cellOf(value: Plain): string {
  if (value === null) return '';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return text.length > CELL_MAX ? `${text.slice(0, CELL_MAX - 1)}…` : text;
}
