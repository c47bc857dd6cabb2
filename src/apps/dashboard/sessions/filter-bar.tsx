import { query, setQuery } from '../shell/router.ts';
import {
  filtersOf,
  isFiltered,
  queryOf,
  STATUSES,
  toggled,
  withLabel,
  type Filters,
} from './filters.ts';
import { LabelFilter } from './label-filter.tsx';

function change(part: Partial<Filters>): void {
  const changed = queryOf({ ...filtersOf(query.value), ...part });
  const at = query.value.get('at');
  if (at !== null) changed.set('at', at);
  setQuery(changed);
}

export function addLabelFilter(label: string): void {
  change({ labels: withLabel(filtersOf(query.value).labels, label) });
}

export function clearFilters(): void {
  change({ statuses: [], labels: [], text: '' });
}

/** The filters of the list, which the address holds. */
export function FilterBar() {
  const filters = filtersOf(query.value);
  const { statuses, labels, text, sort } = filters;
  return (
    <section class="filters" aria-label="Filters">
      <input
        id="search"
        type="search"
        aria-label="Search by name or id"
        placeholder="Search name or id  ( / )"
        value={text}
        onInput={(event) => change({ text: event.currentTarget.value })}
      />
      <div class="chips" role="group" aria-label="Status">
        {STATUSES.map((status) => (
          <button
            key={status}
            type="button"
            class="chip"
            aria-pressed={statuses.includes(status)}
            onClick={() => change({ statuses: toggled(statuses, status) })}
          >
            {status}
          </button>
        ))}
      </div>
      <LabelFilter labels={labels} onChange={(labels) => change({ labels })} />
      <button
        type="button"
        class="quiet"
        onClick={() => change({ sort: sort === 'newest' ? 'oldest' : 'newest' })}
      >
        {sort === 'newest' ? '↓ Newest first' : '↑ Oldest first'}
      </button>
      {isFiltered(filters) && (
        <button type="button" class="quiet" onClick={clearFilters}>
          Clear
        </button>
      )}
    </section>
  );
}
