import type { ComponentChildren } from 'preact';

export type Column<Row> = {
  name: string;
  cell: (row: Row) => ComponentChildren;
  /** Numbers stand at the end of their cell. */
  isNumber?: boolean;
};

type TableProps<Row> = {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string | number;
};

/** A table of up to some hundred rows; where the page is narrow, each row is a card. */
export function Table<Row>({ label, columns, rows, keyOf }: TableProps<Row>) {
  return (
    <div class="card flush">
      <table role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ name, isNumber }) => (
              <th key={name} role="columnheader" class={isNumber === true ? 'number' : ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              {columns.map(({ name, cell, isNumber }) => (
                <td
                  key={name}
                  role="cell"
                  data-name={name}
                  class={isNumber === true ? 'number' : ''}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
