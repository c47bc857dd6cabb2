import { useEffect, useState } from 'preact/hooks';
import { caller } from '../api/caller.ts';
import { CopyBlock } from '../shell/copy-block.tsx';
import { Link } from '../shell/link.tsx';
import { query, setQuery } from '../shell/router.ts';
import { Empty, Failure, Loading } from '../shell/states.tsx';
import { Table, type Column } from '../shell/table.tsx';
import { Time } from '../shell/time.tsx';
import { useResource } from '../api/use-resource.ts';
import type { Organization, Organizations } from './answers.ts';
import { eventsAddress } from './events-address.ts';
import { countOf, numberOf } from './words.ts';

const PAGE = 100;
const EVERY_MS = 5_000;
/** After the last key of a search. */
const QUIET_MS = 250;

const COLUMNS: readonly Column<Organization>[] = [
  {
    name: 'Organization',
    cell: ({ id, name }) => (
      <span class="stacked">
        <strong>{name}</strong>
        <code>{id}</code>
      </span>
    ),
  },
  { name: 'Tier', cell: ({ tier }) => tier },
  { name: 'Open sessions', cell: (one) => <OpenSessions of={one} />, isNumber: true },
  {
    name: 'Credits',
    cell: ({ id, credits_available: available }) => (
      <span class={available <= 0 ? 'warned' : ''}>
        <Link to={eventsAddress({ kind: 'ledger', organization: id })}>{numberOf(available)}</Link>
        {available <= 0 && ' · none left'}
      </span>
    ),
    isNumber: true,
  },
  {
    name: 'Reserved',
    cell: ({ id, credits_reserved: reserved }) => (
      <Link to={eventsAddress({ kind: 'ledger', organization: id })}>{numberOf(reserved)}</Link>
    ),
    isNumber: true,
  },
  {
    name: 'Keys',
    cell: ({ id, keys }) => (
      <Link to={eventsAddress({ kind: 'organization', organization: id })}>{numberOf(keys)}</Link>
    ),
    isNumber: true,
  },
  { name: 'Since', cell: (one) => <Time at={one.created_at} /> },
];

/** All organizations, or those that the search of the address finds. */
export function OrganizationsPart() {
  const search = query.value.get('q') ?? '';
  const after = query.value.get('after');
  const { data, failure, reload } = useResource<Organizations>(pathOf(search, after), {
    everyMs: EVERY_MS,
  });
  return (
    <>
      <Search text={search} />
      <Failure what="The organizations could not be read" failure={failure} retry={reload} />
      {data === null && failure === null && <Loading what="organizations" />}
      {data !== null && <Found data={data} search={search} after={after} />}
    </>
  );
}

type FoundProps = { data: Organizations; search: string; after: string | null };

function Found({ data: { organizations, next }, search, after }: FoundProps) {
  if (organizations.length === 0) return search === '' ? <Teach /> : <Nothing search={search} />;
  return (
    <>
      <p class="muted" role="status">
        {countOf(organizations.length, 'organization')}
        {next !== null && ', in the order of their ids; there are more'}
      </p>
      <Table label="Organizations" columns={COLUMNS} rows={organizations} keyOf={({ id }) => id} />
      {(after !== null || next !== null) && (
        <div class="row-of-buttons">
          <button type="button" disabled={after === null} onClick={() => show(search, null)}>
            First page
          </button>
          <button type="button" disabled={next === null} onClick={() => show(search, next)}>
            Next page
          </button>
        </div>
      )}
    </>
  );
}

/** The list of its sessions is a page for the organization of the tab's key alone: else events. */
function OpenSessions({ of: { id, open_sessions: open, sessions_limit: limit } }: OfOne) {
  const text = `${numberOf(open)} of ${numberOf(limit)}`;
  const isFull = open >= limit;
  return (
    <span class={isFull ? 'warned' : ''}>
      <Link
        to={
          id === caller.value?.id
            ? '/?status=active'
            : eventsAddress({ kind: 'session', organization: id })
        }
      >
        {text}
      </Link>
      {isFull && ' · full'}
    </span>
  );
}
type OfOne = { of: Organization };

/** Asks once the typing has paused. */
function Search({ text }: { text: string }) {
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    if (typed === text) return;
    const timer = setTimeout(() => show(typed, null), QUIET_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <input
      type="search"
      class="search"
      aria-label="Search by name or id"
      placeholder="Search name or id"
      maxLength={64}
      value={typed}
      onInput={(event) => setTyped(event.currentTarget.value)}
    />
  );
}

function Nothing({ search }: { search: string }) {
  return (
    <Empty title="No organization matches">
      <p class="muted">No name and no id contains “{search}”.</p>
    </Empty>
  );
}

function Teach() {
  return (
    <Empty title="No organization yet">
      <p class="muted">
        An organization has its own keys, sessions and credits. Register one on the server; it
        appears here by itself.
      </p>
      <CopyBlock
        title="Register an organization"
        text={'./bss orgs create --name Acme --tier pro'}
      />
    </Empty>
  );
}

function pathOf(search: string, after: string | null): string {
  const asked = new URLSearchParams({ limit: `${PAGE}` });
  if (search !== '') asked.set('q', search);
  if (after !== null) asked.set('after', after);
  return `/api/operator/organizations?${asked.toString()}`;
}

function show(search: string, after: string | null): void {
  const wanted = new URLSearchParams(query.value);
  for (const [name, value] of [
    ['q', search],
    ['after', after ?? ''],
  ] as const)
    if (value === '') wanted.delete(name);
    else wanted.set(name, value);
  setQuery(wanted);
}
