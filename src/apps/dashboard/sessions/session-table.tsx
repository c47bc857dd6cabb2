import { useEffect, useRef, useState } from 'preact/hooks';
import { follow, go, sessionPath } from '../shell/router.ts';
import { Time, useNow } from '../shell/time.tsx';
import { SERVICE_URL } from '../api/service-url.ts';
import { addLabelFilter, clearFilters } from './filter-bar.tsx';
import { formatTimeLeft, isOver, type Row } from './rows.ts';
import { sessionList } from './session-list.ts';
import { StatusBadge } from './status-badge.tsx';
import { useVirtualRows } from './virtual-rows.ts';

const DETAILS_AFTER_MS = 250;
const narrow = matchMedia('(max-width: 900px)');

/** Of sessions to act on; null: the user may only see. */
type Selection = { has(id: string): boolean; toggle(id: string): void } | null;

/** The rows in a table that scrolls by itself; only those in view are in the document. */
export function SessionTable({ rows, selected }: { rows: readonly Row[]; selected: Selection }) {
  const scroller = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState(-1);
  const height = useIsNarrow() ? 88 : 44;
  const now = useNow();
  const virtualizer = useVirtualRows(scroller, rows.length, height);
  const items = virtualizer.getVirtualItems();
  const shown = items.flatMap(({ index }) => rows[index] ?? []);
  useEffect(() => {
    const later = setTimeout(() => void sessionList.readDetails(shown), DETAILS_AFTER_MS);
    return () => clearTimeout(later);
  }, [shown.map(({ id }) => id).join()]);
  useListKeys((key) => {
    if (key === 'Escape') return clearFilters();
    const row = rows[current];
    if (key === 'Enter') return row && go(sessionPath(row.id));
    if (key === 'x') return row && selected?.toggle(row.id);
    const next = Math.min(rows.length - 1, Math.max(0, current + (key === 'j' ? 1 : -1)));
    setCurrent(next);
    virtualizer.scrollToIndex(next);
  });
  return (
    <div class="table" role="table" aria-label="Sessions" aria-rowcount={rows.length + 1}>
      <div role="rowgroup">
        <div class="row head" role="row">
          {['Select', 'Name', 'Status', 'Labels', 'Created', 'Expires in', 'End'].map((name) => (
            <span role="columnheader" key={name} class={name.split(' ')[0]?.toLowerCase()}>
              {name === 'Select' ? <span class="hidden">{name}</span> : name}
            </span>
          ))}
        </div>
      </div>
      <div class="scroller" ref={scroller} role="rowgroup" tabIndex={0} aria-label="Rows">
        <div
          role="presentation"
          class="space"
          style={{ height: `${virtualizer.getTotalSize()}px` }}
        >
          {items.map(({ index, start }) => {
            const row = rows[index];
            if (row === undefined) return null;
            const at = { transform: `translateY(${start}px)`, height: `${height}px` };
            const mark = index === current ? 'current' : '';
            return (
              <div
                key={row.id}
                class={`row ${mark}`}
                role="row"
                aria-rowindex={index + 2}
                data-id={row.id}
                style={at}
              >
                <Cells row={row} now={now} selected={selected} />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function Cells({ row, now, selected }: { row: Row; now: number; selected: Selection }) {
  return (
    <>
      <span role="cell" class="select">
        {selected !== null && (
          <input
            type="checkbox"
            aria-label={`Select ${row.name}`}
            checked={selected.has(row.id)}
            onChange={() => selected.toggle(row.id)}
          />
        )}
      </span>
      <span role="cell" class="name">
        <a href={SERVICE_URL + sessionPath(row.id)} onClick={follow}>
          {row.name}
        </a>
        <code>{row.id}</code>
      </span>
      <span role="cell" class="status-cell">
        <StatusBadge status={row.status} />
      </span>
      <span role="cell" class="labels">
        {Object.entries(row.labels ?? {}).map(([name, value]) => (
          <button
            key={name}
            type="button"
            class="chip small"
            title="Filter by this label"
            onClick={() => addLabelFilter(`${name}=${value}`)}
          >
            {name}={value}
          </button>
        ))}
      </span>
      <span role="cell" class="created">
        <Time at={row.createdAt} />
      </span>
      <span role="cell" class="expires">
        {isOver(row) ? '–' : formatTimeLeft(Date.parse(row.expiresAt) - now)}
      </span>
      <span role="cell" class="end">
        {row.endedReason ?? (isOver(row) ? '…' : '–')}
      </span>
    </>
  );
}

function useIsNarrow(): boolean {
  const [is, set] = useState(narrow.matches);
  useEffect(() => {
    const change = () => set(narrow.matches);
    narrow.addEventListener('change', change);
    return () => narrow.removeEventListener('change', change);
  }, []);
  return is;
}

const KEYS = ['j', 'k', 'x', 'Enter', 'Escape'];

/** Keys of the list, while no field or button has the focus. `/` goes to the search. */
function useListKeys(onKey: (key: string) => unknown): void {
  const latest = useRef(onKey);
  latest.current = onKey;
  useEffect(() => {
    function listen(event: KeyboardEvent) {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('dialog[open]') !== null) return;
      if (event.key === 'Escape' && target.id === 'search') return target.blur();
      if (target.closest('input, a, button, select, textarea') !== null) return;
      if (event.key === '/') {
        event.preventDefault();
        document.getElementById('search')?.focus();
      } else if (KEYS.includes(event.key)) latest.current(event.key);
    }
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
}
