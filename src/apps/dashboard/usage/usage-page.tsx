import { useEffect, useState } from 'preact/hooks';
import { listen } from '../live/organization-events.ts';
import { read, sentenceOf } from '../api/api-client.ts';
import { CopyBlock } from '../shell/copy-block.tsx';
import { FirstSession } from '../shell/first-session.tsx';
import { Link } from '../shell/link.tsx';
import { moment } from '../shell/moment.ts';
import { formatSize } from '../session/files/session-files.ts';
import { query, sessionPath, setParameter } from '../shell/router.ts';
import { Empty, Failure, Loading } from '../shell/states.tsx';
import { Table, type Column } from '../shell/table.tsx';
import { Time } from '../shell/time.tsx';
import { useResource } from '../api/use-resource.ts';
import { SERVICE_URL } from '../api/service-url.ts';
import { daysOf, rangeOf, type Range } from './ranges.ts';
import {
  useBars,
  usagePath,
  type Bar,
  type Usage,
  type UsageEgress,
  type UsageLine,
} from './usage-reader.ts';
import './usage.css';

const LINES = 50;

type Credits = { credits: { balance: number; reserved: number; used: number; granted: number } };

/** What was used in the range of the address, until now or until the moment of `?at=`. */
export function UsagePage() {
  const ends = useEnds();
  const at = moment.value;
  const time = at !== null && 'time' in at ? at.time : null;
  const range = rangeOf(query.value, time, ends.now);
  const { data, failure, reload } = useResource<Usage>(usagePath(range, LINES), {
    again: ends.count,
  });
  const organization = useResource<Credits>('/api/organization', { again: ends.count });
  const bars = useBars(range, ends.count);
  return (
    <div class="page usage">
      <div class="title">
        <h1>Usage</h1>
        <p class="muted">One credit is one started minute with a browser.</p>
      </div>
      <RangeForm range={range} />
      {at !== null && time === null && (
        <p class="notice warn">
          Usage is cut by time, not by event: this page shows its range until now.
        </p>
      )}
      <Failure what="The usage could not be read" failure={failure} retry={reload} />
      {data === null && failure === null && <Loading what="the usage" />}
      {data !== null && <Totals usage={data} credits={time === null ? organization.data : null} />}
      <Failure what="The days could not be read" failure={bars.failure} />
      {bars.data !== null && bars.data.length > 0 && <Days bars={bars.data} />}
      {data !== null && data.lines.length === 0 && <Teach />}
      {data !== null && data.lines.length > 0 && (
        <Lines key={`${range.from} ${ends.count}`} range={range} first={data} />
      )}
      <CopyBlock title="The same as JSON" text={exportCall(range)} />
    </div>
  );
}

/** One reading costs some ten units, however many sessions were billed since the last. */
const AGAIN_MS = 15_000;

/** Changes when sessions have been billed: at once, and then at most every 15 s. */
function useEnds(): { count: number; now: number } {
  const [ends, setEnds] = useState({ count: 0, now: Date.now() });
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let nextAt = 0;
    const again = () => setEnds(({ count }) => ({ count: count + 1, now: Date.now() }));
    function onBilled(): void {
      timer = undefined;
      nextAt = Date.now() + AGAIN_MS;
      again();
    }
    const stop = listen({
      onOpen: (isGap) => isGap && again(),
      onEvent({ type }) {
        if (type === 'ledger.slot-released')
          timer ??= setTimeout(onBilled, Math.max(0, nextAt - Date.now()));
      },
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  return ends;
}

function RangeForm({ range }: { range: Range }) {
  const field = (name: 'from' | 'to', label: string) => (
    <label>
      {label}
      <input
        type="date"
        value={(name === 'to' ? (query.value.get('to') ?? '') : range.from).slice(0, 10)}
        onChange={(event) => setParameter(name, event.currentTarget.value || null)}
      />
    </label>
  );
  return (
    <form class="range" onSubmit={(event) => event.preventDefault()}>
      {field('from', 'From')}
      {field('to', 'Until, not included')}
      <Link to="/usage" class="button">
        This month
      </Link>
      <span class="muted small">Days begin at 00:00 UTC.</span>
    </form>
  );
}

function Totals({ usage: { totals, open }, credits }: { usage: Usage; credits: Credits | null }) {
  const lines = totals.sessions === 0 ? '' : '#lines';
  const facts: [name: string, value: string, to: string][] = [
    ['Used in this range', countOf(totals.credits, 'credit'), lines],
    ['Sessions billed', countOf(totals.sessions, 'session'), lines],
    [
      'Reserved by open sessions',
      `${countOf(open.credits_reserved, 'credit')}, ${countOf(open.sessions, 'session')}`,
      '/?status=active&status=creating&status=queued',
    ],
  ];
  const { bytes_sent: sent, bytes_received: received, refused } = totals.egress;
  if (sent + received + refused > 0)
    facts.push(['Egress of sessions with rules', egressText(totals.egress), lines]);
  if (credits !== null)
    facts.push(
      ['Available now', countOf(credits.credits.balance, 'credit'), ''],
      ['Granted in all', countOf(credits.credits.granted, 'credit'), ''],
    );
  return (
    <dl class="totals card">
      {facts.map(([name, value, to]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{valueOf(value, to)}</dd>
        </div>
      ))}
    </dl>
  );
}

function valueOf(value: string, to: string) {
  if (to === '') return value;
  return to.startsWith('#') ? <a href={to}>{value}</a> : <Link to={to}>{value}</Link>;
}

/** A bar for each day that had usage; a click makes it the range. */
function Days({ bars }: { bars: readonly Bar[] }) {
  const most = Math.max(1, ...bars.map(({ minutes }) => minutes));
  return (
    <section class="card" aria-labelledby="days">
      <h2 id="days">By day</h2>
      <ol class="days">
        {bars.map((bar) => (
          <li key={bar.from}>
            <Link to={`/usage?${new URLSearchParams({ from: bar.from, to: bar.to }).toString()}`}>
              {daysOf(bar)}
            </Link>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
              <rect width={(bar.minutes / most) * 100} height="10" />
            </svg>
            <span>
              {bar.minutes} min, {countOf(bar.sessions, 'session')}
            </span>
          </li>
        ))}
      </ol>
      <p class="muted small">A day without a billed session has no line.</p>
    </section>
  );
}

const COLUMNS: readonly Column<UsageLine>[] = [
  {
    name: 'Session',
    cell: (line) => <Link to={sessionPath(line.session_id)}>{line.session_name}</Link>,
  },
  { name: 'User', cell: ({ user_id: user }) => user },
  { name: 'Ended', cell: ({ ended_at: at }) => <Time at={at} /> },
  { name: 'Time', cell: ({ minutes }) => `${minutes} min`, isNumber: true },
  { name: 'Used', cell: (line) => countOf(line.credits_used, 'credit'), isNumber: true },
  { name: 'Returned', cell: (line) => countOf(line.credits_refunded, 'credit'), isNumber: true },
  { name: 'Egress', cell: ({ egress }) => (egress === null ? '' : egressText(egress)) },
  {
    name: 'Made by',
    cell: ({ session_id: id, events }) => (
      <span class="made-by">
        {events.map(({ sequence, type }) => (
          <Link key={sequence} to={`${sessionPath(id)}?at=${sequence}`}>
            {(type.split('.')[1] ?? type).replaceAll('-', ' ')}
          </Link>
        ))}
      </span>
    ),
  },
];

function Lines({ range, first }: { range: Range; first: Usage }) {
  const [more, setMore] = useState<Usage[]>([]);
  const [failure, setFailure] = useState<string | null>(null);
  const { next } = (more.at(-1) ?? first).pagination;
  async function readMore() {
    try {
      const page = await read<Usage>(usagePath(range, LINES, next));
      setMore([...more, page]);
      setFailure(null);
    } catch (error) {
      setFailure(sentenceOf(error));
    }
  }
  return (
    <section id="lines" aria-labelledby="sessions">
      <h2 id="sessions">By session</h2>
      <Table
        label="Usage by session"
        columns={COLUMNS}
        rows={[first, ...more].flatMap(({ lines }) => lines)}
        keyOf={(line) => line.session_id}
      />
      <Failure what="More could not be read" failure={failure} />
      {next !== null && (
        <button type="button" onClick={() => void readMore()}>
          More sessions
        </button>
      )}
    </section>
  );
}

function Teach() {
  return (
    <Empty title="No session was billed in this range">
      <p class="muted">
        A session reserves credits when it is created. It is billed when it ends: it pays the
        minutes with its browser, and the rest is returned.
      </p>
      <FirstSession />
    </Empty>
  );
}

function egressText({ bytes_sent: sent, bytes_received: received, refused }: UsageEgress) {
  const bytes = `${formatSize(sent)} out, ${formatSize(received)} in`;
  return refused === 0 ? bytes : `${bytes}, ${refused} refused`;
}

const exportCall = (range: Range) =>
  `curl '${SERVICE_URL}${usagePath(range, 100)}' \\\n  -H "Authorization: Bearer $API_KEY"`;

const countOf = (count: number, what: string) =>
  `${count.toLocaleString()} ${what}${count === 1 ? '' : 's'}`;
