import { useMemo, useState } from 'preact/hooks';
import { operatorToken } from '../api/credential.ts';
import { eventsAddress } from '../operator/events-address.ts';
import { Link } from '../shell/link.tsx';
import { moment, setMoment } from '../shell/moment.ts';
import { query, setParameter } from '../shell/router.ts';
import { toggled } from '../sessions/filters.ts';
import { Failure, Loading } from '../shell/states.tsx';
import { Table } from '../shell/table.tsx';
import { formatTime, Time, useNow } from '../shell/time.tsx';
import { useResource } from '../api/use-resource.ts';
import { PoolChart } from './pool-chart.tsx';
import {
  COUNTERS,
  endOf,
  indexAt,
  RANGES,
  rangeOf,
  seriesQuery,
  withNow,
  type CounterName,
  type Point,
  type Range,
  type Series,
} from './series.ts';

const NOTHING_HIDDEN: ReadonlySet<CounterName> = new Set();

/** The time of `?at=` in ms; null: now. A position of the event store is no time here. */
export function momentMs(): number | null {
  const at = moment.value;
  return at !== null && 'time' in at ? Date.parse(at.time) : null;
}

/** The counters of the pool over time, as a chart and as a table. */
export function PoolSection({ current, path }: { current: Point | null; path: string }) {
  const range = rangeOf(query.value.get('range'));
  const at = momentMs();
  const now = useNow(range.refreshMs);
  // The window stays while moments in it are chosen.
  const [held, setHeld] = useState<{ range: Range; end: number } | null>(null);
  const isHeld =
    at !== null && held?.range === range && at <= held.end && at >= held.end - range.ms;
  const end = isHeld ? held.end : endOf(at, range, now);
  const asked = path + seriesQuery(end, range, at !== null);
  const { data, failure, reload } = useResource<Series>(asked);
  const [looked, setLooked] = useState<string | null>(null);
  const [hidden, setHidden] = useState(NOTHING_HIDDEN);
  const points = useMemo(
    () => withNow(data?.points ?? [], at === null ? current : null),
    [data, current, at === null],
  );
  const index =
    looked !== null ? indexAt(points, Date.parse(looked)) : at === null ? -1 : indexAt(points, at);
  const shown = points[index] ?? points.at(-1);
  function choose(chosen: number) {
    const point = points[chosen];
    if (point === undefined) return;
    setHeld({ range, end });
    setLooked(null);
    setMoment({ time: point.at });
  }
  return (
    <section aria-labelledby="pool-title" class="pool-section">
      <div class="title">
        <h2 id="pool-title">Browsers over time</h2>
        <Ranges chosen={range} />
      </div>
      <Failure what="The pool could not be read" failure={failure} retry={reload} />
      {shown === undefined ? (
        failure === null && <Loading what="the pool" />
      ) : (
        <div class="card pool-card">
          <ShownMoment shown={shown} isNow={at === null && index < 0} isChosen={at !== null} />
          <Numbers
            shown={shown}
            isNow={at === null && index < 0}
            hidden={hidden}
            toggle={(name) => setHidden(new Set(toggled([...hidden], name)))}
          />
          <PoolChart
            points={points}
            hidden={hidden}
            index={index}
            onLook={(to) => setLooked(points[to]?.at ?? null)}
            onChoose={choose}
          />
          <PointTable points={points} />
        </div>
      )}
    </section>
  );
}

function Ranges({ chosen }: { chosen: Range }) {
  return (
    <div class="chips" role="group" aria-label="Range">
      {RANGES.map(({ name, title }) => (
        <button
          key={name}
          type="button"
          class="chip"
          aria-pressed={name === chosen.name}
          onClick={() => setParameter('range', name)}
        >
          {title}
        </button>
      ))}
    </div>
  );
}

type MomentProps = { shown: Point; isNow: boolean; isChosen: boolean };

function ShownMoment({ shown, isNow, isChosen }: MomentProps) {
  return (
    <div class="pool-moment">
      <span class="numbers">
        {isNow ? 'Now,' : 'As of'} <Time at={shown.at} />
      </span>
      {isChosen ? (
        <button type="button" onClick={() => setMoment(null)}>
          Back to now
        </button>
      ) : (
        <span class="muted small">Click the chart to stay at a moment.</span>
      )}
    </div>
  );
}

type NumbersProps = {
  shown: Point;
  isNow: boolean;
  hidden: ReadonlySet<CounterName>;
  toggle: (name: CounterName) => void;
};

/** What the number counts. */
const kindOf = (name: CounterName) => (name === 'waiting' ? 'session' : 'workload');

/**
 * The numbers of a moment; the name of each is the legend of its line, too, and hides it. For
 * operators each leads to the events that made it.
 */
function Numbers({ shown, isNow, hidden, toggle }: NumbersProps) {
  return (
    <ul class="pool-numbers">
      {COUNTERS.map(({ name, title }) => (
        <li key={name}>
          <button
            type="button"
            aria-pressed={!hidden.has(name)}
            title={hidden.has(name) ? 'Show this line' : 'Hide this line'}
            onClick={() => toggle(name)}
          >
            <span class="pool-name">
              <svg class={`pool-mark ${name}`} viewBox="0 0 24 4" aria-hidden="true">
                <path d="M0 2h24" />
              </svg>
              {title}
            </span>
          </button>
          <strong data-counter={name}>
            {operatorToken.value === null ? (
              shown[name]
            ) : (
              <Link to={eventsAddress({ kind: kindOf(name), ...(isNow ? {} : { at: shown.at }) })}>
                {shown[name]}
              </Link>
            )}
          </strong>
        </li>
      ))}
    </ul>
  );
}

/** The numbers of the chart as text, newest first. */
function PointTable({ points }: { points: readonly Point[] }) {
  const [isOpen, setOpen] = useState(false);
  const columns = [
    { name: 'Time', cell: ({ at }: Point) => <Time at={at} /> },
    ...COUNTERS.map(({ name, title }) => ({
      name: title,
      cell: (point: Point) => point[name],
      isNumber: true,
    })),
  ];
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The same numbers as a table</summary>
      {isOpen && (
        <div class="pool-points" tabIndex={0} role="region" aria-label="The pool over time">
          <Table
            label={`The pool until ${formatTime(points.at(-1)?.at ?? '')}`}
            columns={columns}
            rows={points.toReversed()}
            keyOf={({ at }) => at}
          />
        </div>
      )}
    </details>
  );
}
