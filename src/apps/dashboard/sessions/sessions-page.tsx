import { computed } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { may } from '../api/caller.ts';
import { moment } from '../shell/moment.ts';
import type { Moment } from '../shell/moment-text.ts';
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

/** What the filters of the address show of the live list. */
const shownRows = computed(() => applyFilters(rows.value, filtersOf(query.value)));

/** The sessions live, or as of `?at=`. */
export function SessionsPage() {
  const at = moment.value;
  return (
    <div class={at === null ? 'page list-page' : 'page'}>
      <div class="title">
        <h1>Sessions</h1>
        {at === null && <LiveCount />}
        <MomentChooser />
      </div>
      {at === null ? <LiveSessions /> : <Past at={at} />}
    </div>
  );
}

function Past({ at }: { at: Moment }) {
  return (
    <>
      <FilterBar />
      {'time' in at ? (
        <PastSessions time={at.time} filters={filtersOf(query.value)} />
      ) : (
        <p class="notice warn">
          This address names an event, not a time. Choose a time to see the list at that time.
        </p>
      )}
    </>
  );
}

function LiveCount() {
  const count = rows.value.length;
  return (
    <p class="muted numbers" role="status">
      {state.value.loading ? `Loading… ${count}` : `${shownRows.value.length} of ${count}`}
      {!state.value.loading &&
        leftOut.value > 0 &&
        `, the newest; ${leftOut.value} older ones are not shown`}
    </p>
  );
}

function LiveSessions() {
  const [ids, setIds] = useState<readonly string[]>([]);
  const { labels } = filtersOf(query.value);
  const shown = shownRows.value;
  const { loading, failure } = state.value;
  useEffect(() => sessionList.start(), []);
  useEffect(() => {
    for (const label of labels) void sessionList.readLabel(label);
  }, [labels.join()]);
  const selected = may('member')
    ? {
        has: (id: string) => ids.includes(id),
        toggle: (id: string) => setIds(toggled(ids, id)),
      }
    : null;
  const isEmpty =
    rows.value.length === 0 && !loading && failure === null && connection.value.isOpen;
  return (
    <>
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
    </>
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
