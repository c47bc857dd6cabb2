import { fieldOf } from '../shell/form-field.ts';
import { query, setQuery } from '../shell/router.ts';
import { filtersOf, isFiltered, queryOf, STATUSES, toggled, type Filters } from './filters.ts';

function change(part: Partial<Filters>): void {
  setQuery(queryOf({ ...filtersOf(query.value), ...part }));
}

export function addLabelFilter(label: string): void {
  const { labels } = filtersOf(query.value);
  if (label.indexOf('=') > 0 && !labels.includes(label)) change({ labels: [...labels, label] });
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
      <div class="chips" role="group" aria-label="Labels">
        {labels.map((label) => (
          <button
            key={label}
            type="button"
            class="chip"
            aria-pressed="true"
            title="Remove this filter"
            onClick={() => change({ labels: toggled(labels, label) })}
          >
            {label} ×
          </button>
        ))}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const form = event.currentTarget;
            addLabelFilter(fieldOf(form, 'label'));
            form.reset();
          }}
        >
          <input name="label" class="label" aria-label="Label" placeholder="label=value" />
        </form>
      </div>
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
