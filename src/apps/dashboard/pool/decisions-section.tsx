import { useEffect, useState } from 'preact/hooks';
import { read, sentenceOf } from '../api/api-client.ts';
import { eventsAddress } from '../operator/events-address.ts';
import { Link } from '../shell/link.tsx';
import { query, setParameter } from '../shell/router.ts';
import { Failure, Loading } from '../shell/states.tsx';
import { Table } from '../shell/table.tsx';
import { Time } from '../shell/time.tsx';
import { useResource } from '../api/use-resource.ts';
import { factsOfInputs, merged, sentenceOfDecision, type Decision } from './decisions.ts';

const EVERY_MS = 10_000;
const LIMIT = 20;
type Page = { decisions: Decision[]; next: string | null };

type DecisionsProps = { servers: readonly string[]; at: number | null };

/** What the autoscaler decided, newest first, each with all that it followed from. */
export function DecisionsSection({ servers, at }: DecisionsProps) {
  const server = query.value.get('server');
  const path =
    `/api/operator/pool/decisions?limit=${LIMIT}` +
    (server === null ? '' : `&server=${encodeURIComponent(server)}`) +
    (at === null ? '' : `&as_of=${new Date(at).toISOString()}`);
  return (
    <section aria-labelledby="decisions-title" class="pool-section">
      <div class="title">
        <h2 id="decisions-title">Decisions of the autoscaler</h2>
        <p class="muted small">
          {at === null ? 'Newest first' : 'Up to the chosen moment, newest first'}
        </p>
        <ServerFilter servers={servers} chosen={server} />
      </div>
      <Decisions key={path} path={path} isLive={at === null} />
    </section>
  );
}

function ServerFilter({ servers, chosen }: { servers: readonly string[]; chosen: string | null }) {
  const all = chosen === null || servers.includes(chosen) ? servers : [...servers, chosen];
  if (all.length < 2 && chosen === null) return null;
  return (
    <div class="chips" role="group" aria-label="Server">
      {[null, ...all].map((id) => (
        <button
          key={id ?? ''}
          type="button"
          class="chip"
          aria-pressed={id === chosen}
          onClick={() => setParameter('server', id)}
        >
          {id ?? 'All servers'}
        </button>
      ))}
    </div>
  );
}

function Decisions({ path, isLive }: { path: string; isLive: boolean }) {
  const { data, failure, reload } = useResource<Page>(path, isLive ? { everyMs: EVERY_MS } : {});
  const [shown, setShown] = useState<Decision[]>([]);
  const [next, setNext] = useState<string | null>(null);
  const [older, setOlder] = useState<{ isBusy: boolean; failure: string | null }>({
    isBusy: false,
    failure: null,
  });
  useEffect(() => {
    if (data === null) return;
    // More new ones than a page holds: what is between is read by `Older` again.
    const last = data.decisions.at(-1);
    const isGap = data.next !== null && !shown.some(({ sequence }) => sequence === last?.sequence);
    setShown(isGap ? data.decisions : merged(data.decisions, shown));
    if (isGap || shown.length === 0) setNext(data.next);
  }, [data]);
  async function readOlder() {
    setOlder({ isBusy: true, failure: null });
    try {
      const page = await read<Page>(`${path}&before=${next}`);
      setShown((before) => merged(before, page.decisions));
      setNext(page.next);
      setOlder({ isBusy: false, failure: null });
    } catch (error) {
      setOlder({ isBusy: false, failure: sentenceOf(error) });
    }
  }
  return (
    <>
      <Failure what="The decisions could not be read" failure={failure} retry={reload} />
      {data === null && failure === null && <Loading what="the decisions" />}
      {data !== null && shown.length === 0 && next === null && <NoDecision />}
      {shown.length > 0 && (
        <Table
          label="Decisions"
          columns={COLUMNS}
          rows={shown}
          keyOf={({ sequence }) => sequence}
        />
      )}
      <Failure what="Older decisions could not be read" failure={older.failure} />
      {next !== null && (
        <button
          type="button"
          class="pool-older"
          disabled={older.isBusy}
          onClick={() => void readOlder()}
        >
          {older.isBusy ? 'Reading…' : 'Older decisions'}
        </button>
      )}
    </>
  );
}

const COLUMNS = [
  { name: 'Time', cell: ({ time }: Decision) => <Time at={time} /> },
  { name: 'Server', cell: ({ server_id: id }: Decision) => <code>{id}</code> },
  { name: 'Decision', cell: (one: Decision) => sentenceOfDecision(one) },
  { name: 'Inputs', cell: (one: Decision) => <Inputs of={one} /> },
  {
    name: 'Event',
    cell: ({ sequence, server_id: id }: Decision) => (
      <Link to={eventsAddress({ kind: 'server', id, at: `${sequence}` })}>{sequence}</Link>
    ),
    isNumber: true,
  },
];

function Inputs({ of: { inputs, decision, policy } }: { of: Decision }) {
  const [isOpen, setOpen] = useState(false);
  const { idle, busy, waiting, arrivals10s } = inputs;
  return (
    <details class="pool-inputs" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {idle} idle, {busy} busy, {waiting} waiting, {arrivals10s} requests in 10 s
      </summary>
      {isOpen && (
        <dl>
          {[
            ...factsOfInputs(inputs),
            ['Needed idle browsers', `${decision.need}`],
            ['Room for further browsers', `${decision.room}`],
            ['Version of the policy', `${policy}`],
          ].map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </details>
  );
}

function NoDecision() {
  return (
    <div class="card">
      <h3>No decision</h3>
      <p class="muted">
        The autoscaler decides each second how many browsers each server keeps idle. A decision is
        recorded when the target or the limiting resource changes.
      </p>
    </div>
  );
}
