import { useEffect, useState } from 'preact/hooks';
import { may } from '../api/caller.ts';
import { moment } from '../shell/moment.ts';
import { MomentChooser } from '../shell/moment-chooser.tsx';
import { query } from '../shell/router.ts';
import { connection } from '../live/organization-events.ts';
import { FirstSession } from '../shell/first-session.tsx';
import { Empty, Failure } from '../shell/states.tsx';
import './sessions.css';
import { BulkActions } from './bulk-actions.tsx';
import { clearFilters, FilterBar } from './filter-bar.tsx';
import { applyFilters, filtersOf, toggled } from './filters.ts';
import { PastSessions } from './past-sessions.tsx';
import { leftOut, rows, sessionList, state } from './session-list.ts';
import { SessionTable } from './session-table.tsx';

/** The sessions live, or as of `?at=`. */
export function SessionsPage() {
  const at = moment.value;
  if (at === null) return <LiveSessions />;
  return (
    <div class="page">
      <div class="title">
        <h1>Sessions</h1>
        <MomentChooser />
      </div>
      <FilterBar />
      {'time' in at ? (
        <PastSessions time={at.time} filters={filtersOf(query.value)} />
      ) : (
        <p class="notice warn">
          A position of the log is the moment of one session here. Choose a time for all of them.
        </p>
      )}
    </div>
  );
}

function LiveSessions() {
  const [ids, setIds] = useState<readonly string[]>([]);
  const filters = filtersOf(query.value);
  const all = rows.value;
  const shown = applyFilters(all, filters);
  const { loading, failure } = state.value;
  useEffect(() => sessionList.start(), []);
  useEffect(() => {
    for (const label of filters.labels) void sessionList.readLabel(label).catch(() => undefined);
  }, [filters.labels.join()]);
  const selected = may('member')
    ? {
        has: (id: string) => ids.includes(id),
        toggle: (id: string) => setIds(toggled(ids, id)),
      }
    : null;
  const isEmpty = all.length === 0 && !loading && failure === null && connection.value.isOpen;
  return (
    <div class="page list-page">
      <div class="title">
        <h1>Sessions</h1>
        <p class="muted numbers" role="status">
          {loading ? `Loading… ${all.length}` : `${shown.length} of ${all.length}`}
          {leftOut.value > 0 && `, the newest; ${leftOut.value} older ones are not shown`}
        </p>
        <MomentChooser />
      </div>
      <Failure
        what="The sessions could not be read"
        failure={failure}
        retry={() => void sessionList.reload()}
      />
      {isEmpty ? (
        <Teach />
      ) : (
        <>
          <FilterBar />
          <BulkActions ids={ids} clear={() => setIds([])} />
          {shown.length === 0 && !loading ? (
            <Empty title="No session matches">
              <button type="button" onClick={clearFilters}>
                Clear the filters
              </button>
            </Empty>
          ) : (
            <SessionTable rows={shown} selected={selected} />
          )}
        </>
      )}
    </div>
  );
}

function Teach() {
  return (
    <Empty title="No session yet">
      <p class="muted">
        A session is one browser of your own. Create one; it appears here by itself.
      </p>
      <FirstSession />
    </Empty>
  );
}
