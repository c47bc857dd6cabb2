import { useState } from 'preact/hooks';
import { read, sentenceOf } from '../api/api-client.ts';
import { useResource } from '../api/use-resource.ts';
import { Link } from '../shell/link.tsx';
import { sessionPath } from '../shell/router.ts';
import { Empty, Failure, Loading } from '../shell/states.tsx';
import { Table, type Column } from '../shell/table.tsx';
import { Time } from '../shell/time.tsx';
import { applyFilters, type Filters } from './filters.ts';
import { rowOfListed, type ListedSession, type Row } from './rows.ts';
import { StatusBadge } from './status-badge.tsx';

const PAGE = 100;

type Page = { sessions: ListedSession[]; total: number };
type PastProps = { time: string; filters: Filters };

/** The sessions as they were, newest first. A page is folded from the log, and costs 20 units. */
export function PastSessions({ time, filters }: PastProps) {
  const path = pathOf(time, filters);
  // What another time or filter has shown is gone at once.
  return <Listed key={path} path={path} time={time} filters={filters} />;
}

function Listed({ path, time, filters }: PastProps & { path: string }) {
  const { data, failure, reload } = useResource<Page>(path);
  return (
    <>
      <Failure what="The sessions could not be read" failure={failure} retry={reload} />
      {data === null && failure === null && <Loading what="the sessions" />}
      {data !== null && <Pages first={data} path={path} time={time} filters={filters} />}
    </>
  );
}

function Pages({ first, path, time, filters }: PastProps & { first: Page; path: string }) {
  const [more, setMore] = useState<readonly ListedSession[]>([]);
  const [failure, setFailure] = useState<string | null>(null);
  const listed = [...first.sessions, ...more];
  const rows = listed.map((session) => rowOfListed(session, undefined));
  // The API has chosen by labels already; its rows do not tell them.
  const shown = applyFilters(rows, { ...filters, labels: [] });
  async function readMore() {
    try {
      const page = await read<Page>(`${path}&offset=${listed.length}`);
      setMore([...more, ...page.sessions]);
      setFailure(null);
    } catch (error) {
      setFailure(sentenceOf(error));
    }
  }
  return (
    <>
      <p class="muted numbers" role="status">
        {listed.length < first.total
          ? `${shown.length} match, of the newest ${listed.length} of ${first.total}`
          : `${shown.length} of ${listed.length}`}
      </p>
      {shown.length === 0 ? (
        <Empty title="No session matches">
          <p class="muted">Of those that there were at this time.</p>
        </Empty>
      ) : (
        <Table
          label="Sessions as they were"
          columns={columnsAt(time)}
          rows={shown}
          keyOf={({ id }) => id}
        />
      )}
      <Failure what="More could not be read" failure={failure} />
      {listed.length < first.total && (
        <button type="button" onClick={() => void readMore()}>
          More sessions
        </button>
      )}
    </>
  );
}

function columnsAt(time: string): readonly Column<Row>[] {
  return [
    {
      name: 'Name',
      cell: ({ id, name }) => (
        <Link to={`${sessionPath(id)}?at=${encodeURIComponent(time)}`}>{name}</Link>
      ),
    },
    { name: 'Id', cell: ({ id }) => <code>{id}</code> },
    { name: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
    { name: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { name: 'Expires', cell: ({ expiresAt }) => <Time at={expiresAt} /> },
  ];
}

/** The API takes one status; of several the page chooses itself. */
function pathOf(time: string, { statuses, labels }: Filters): string {
  const asked = new URLSearchParams({ as_of: time, limit: `${PAGE}` });
  const [status, ...others] = statuses;
  if (status !== undefined && others.length === 0) asked.set('status', status);
  for (const label of labels) asked.append('label', label);
  return `/api/sessions?${asked.toString()}`;
}
