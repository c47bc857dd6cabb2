import { useEffect, useRef, useState } from 'preact/hooks';
import { connection } from '../live/organization-events.ts';
import { LiveScreen } from '../session/live-screen.tsx';
import '../session/session.css';
import type { Details } from '../session/use-session.ts';
import { toggled } from '../sessions/filters.ts';
import { LabelFilter } from '../sessions/label-filter.tsx';
import { rows, sessionList, state } from '../sessions/session-list.ts';
import { FirstSession } from '../shell/first-session.tsx';
import { Link } from '../shell/link.tsx';
import { moment, setMoment } from '../shell/moment.ts';
import { query, setQuery } from '../shell/router.ts';
import { Empty, Failure, Loading } from '../shell/states.tsx';
import { formatSpan, useNow } from '../shell/time.tsx';
import { useResource } from '../api/use-resource.ts';
import {
  candidatesOf,
  intervalOf,
  nextSlots,
  queryOfView,
  SIZES,
  viewOf,
  type Slot,
  type WallView,
} from './slots.ts';
import { Tile } from './tile.tsx';
import './wall.css';

/** The screens of some active sessions, as pictures. */
export function WallPage() {
  const view = viewOf(query.value);
  const [screen, setScreen] = useState<string | null>(null);
  const now = useNow();
  const slots = useRef<readonly Slot[]>([]);
  slots.current = nextSlots(slots.current, rows.value, view, now);
  const organization = useResource<{ limits: { requests_per_minute: number } }>(
    '/api/organization',
  );
  const limit = organization.data?.limits.requests_per_minute ?? null;
  const known = new Map(rows.value.map((row) => [row.id, row]));
  const everyMs = intervalOf(slots.current.length, limit);
  const { loading, failure } = state.value;
  useEffect(() => sessionList.start(), []);
  useEffect(() => {
    for (const label of view.labels) void sessionList.readLabel(label);
  }, [view.labels.join()]);
  useArrowKeys();
  const shown = slots.current;
  const isEmpty = shown.length === 0;
  return (
    <div class="page wall-page">
      <Title count={shown.length} candidates={candidatesOf(rows.value, view).length} />
      {moment.value !== null && (
        <p class="notice warn">
          Pictures are not kept: the wall shows now.
          <button type="button" onClick={() => setMoment(null)}>
            Back to now
          </button>
        </p>
      )}
      <Failure
        what="The sessions could not be read"
        failure={failure}
        retry={() => void sessionList.reload()}
      />
      <WallBar view={view} />
      {!isEmpty && <CostLine tiles={shown.length} everyMs={everyMs} limit={limit} />}
      {isEmpty && loading && <Loading what="sessions" />}
      {isEmpty && !loading && failure === null && connection.value.isOpen && <Teach view={view} />}
      <ul class={`wall size-${view.size}`} aria-label="Screens">
        {shown.map(({ id }) => {
          const row = known.get(id);
          if (row === undefined) return null;
          return (
            <Tile
              key={id}
              row={row}
              everyMs={everyMs}
              now={now}
              isPinned={view.pins.includes(id)}
              pin={() => change({ pins: toggled(view.pins, id) })}
              openScreen={() => setScreen(id)}
            />
          );
        })}
      </ul>
      {screen !== null && <ScreenDialog key={screen} id={screen} close={() => setScreen(null)} />}
    </div>
  );
}

function change(part: Partial<WallView>): void {
  setQuery(queryOfView({ ...viewOf(query.value), ...part }));
}

function Title({ count, candidates }: { count: number; candidates: number }) {
  return (
    <div class="title">
      <h1>Wall</h1>
      <p class="muted" role="status">
        {count} of <Link to="/?status=active">{candidates} active</Link>
      </p>
    </div>
  );
}

/** How many, and which; the address holds it. */
function WallBar({ view }: { view: WallView }) {
  const { size, labels, text } = view;
  return (
    <section class="wall-bar" aria-label="What the wall shows">
      <div class="chips" role="group" aria-label="Screens">
        {SIZES.map((one) => (
          <button
            key={one}
            type="button"
            class="chip"
            aria-pressed={one === size}
            onClick={() => change({ size: one })}
          >
            {one} screens
          </button>
        ))}
      </div>
      <input
        type="search"
        aria-label="Search by name or id"
        placeholder="Search name or id"
        value={text}
        onInput={(event) => change({ text: event.currentTarget.value })}
      />
      <LabelFilter labels={labels} onChange={(labels) => change({ labels })} />
    </section>
  );
}

type CostProps = { tiles: number; everyMs: number; limit: number | null };

function CostLine({ tiles, everyMs, limit }: CostProps) {
  const aMinute = Math.round((tiles * 60_000) / everyMs);
  return (
    <p class="muted small">
      A picture of each every {formatSpan(everyMs)} while it is in view: at most {aMinute} requests
      a minute
      {limit !== null && `, of the ${limit.toLocaleString()} of your organization`}.
    </p>
  );
}

function Teach({ view }: { view: WallView }) {
  if (view.labels.length > 0 || view.text !== '')
    return (
      <Empty title="No active session matches">
        <button type="button" onClick={() => change({ labels: [], text: '' })}>
          Clear the filters
        </button>
      </Empty>
    );
  return (
    <Empty title="No active session">
      <p class="muted">
        The wall shows what the browsers of active sessions show. Create one; its screen appears
        here by itself.
      </p>
      <FirstSession />
    </Empty>
  );
}

function ScreenDialog({ id, close }: { id: string; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { data, failure, reload } = useResource<Details>(`/api/sessions/${encodeURIComponent(id)}`);
  useEffect(() => dialog.current?.showModal(), []);
  const isThere = data !== null && data.viewer_url !== null && data.vnc_password !== null;
  return (
    <dialog class="wall-screen" ref={dialog} onClose={close} aria-label="Live screen">
      <h2>{data?.session_name ?? 'Live screen'}</h2>
      <Failure what="The session could not be read" failure={failure} retry={reload} />
      {data === null && failure === null && <Loading what="the live screen" />}
      {isThere && (
        <LiveScreen
          viewerUrl={data.viewer_url ?? ''}
          password={data.vnc_password ?? ''}
          close={close}
        />
      )}
      {!isThere && (
        <p>
          {data !== null && 'This session has no screen to watch. '}
          <button type="button" onClick={close}>
            Close
          </button>
        </p>
      )}
    </dialog>
  );
}

/** Arrow keys move from tile to tile; Enter opens the one that has the focus, as any link. */
function useArrowKeys(): void {
  useEffect(() => {
    function listen(event: KeyboardEvent) {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('dialog[open]') !== null) return;
      if (target.closest('input, select, textarea') !== null) return;
      const grid = document.querySelector('.wall');
      if (grid === null) return;
      const columns = getComputedStyle(grid).gridTemplateColumns.split(' ').length;
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
      const by = step[event.key as keyof typeof step];
      if (by === undefined) return;
      const links = [...grid.querySelectorAll<HTMLElement>('.tile a.name')];
      const tile = target.closest('.tile');
      const current = links.findIndex((link) => link.closest('.tile') === tile);
      const next = links[current === -1 ? 0 : current + by];
      if (next === undefined) return;
      event.preventDefault();
      next.focus();
    }
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
}
