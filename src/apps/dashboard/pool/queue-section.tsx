import { caller } from '../api/caller.ts';
import { CopyBlock } from '../shell/copy-block.tsx';
import { Link } from '../shell/link.tsx';
import { sessionPath } from '../shell/router.ts';
import { Failure, Loading } from '../shell/states.tsx';
import { Table } from '../shell/table.tsx';
import { formatSpan, Time, useNow } from '../shell/time.tsx';
import type { Resource } from '../api/use-resource.ts';
import { SERVICE_URL } from '../api/service-url.ts';
import { formatEstimate } from './units.ts';

/** A session of GET /api/queue. */
export type Waiting = {
  session_id: string;
  organization_id: string;
  since: string;
  position: number;
  estimated_wait_seconds: number | null;
  why: string;
};
export type Queue = { waiting: Waiting[]; total: number };

type QueueProps = { queue: Resource<Queue>; isOperator: boolean; isPast: boolean };

/** Who waits for a browser now, at which place, and why. */
export function QueueSection({ queue, isOperator, isPast }: QueueProps) {
  const { data, failure, reload } = queue;
  return (
    <section aria-labelledby="queue-title" class="pool-section">
      <div class="title">
        <h2 id="queue-title">Who waits, and why</h2>
        <p class="muted small">
          {isOperator ? 'Sessions of all organizations' : 'Sessions of your organization'}
          {isPast ? '; the queue of now, not of the chosen moment' : ''}
        </p>
      </div>
      <Failure what="The queue could not be read" failure={failure} retry={reload} />
      {data === null && failure === null && <Loading what="the queue" />}
      {data?.total === 0 && <NoSessionWaits />}
      {data !== null && data.total > 0 && <Rows queue={data} isOperator={isOperator} />}
    </section>
  );
}

function Rows({ queue, isOperator }: { queue: Queue; isOperator: boolean }) {
  const now = useNow();
  const own = caller.value?.id;
  const columns = [
    { name: 'Place', cell: ({ position }: Waiting) => position, isNumber: true },
    {
      name: 'Session',
      cell: ({ session_id: id, organization_id: organization }: Waiting) => (
        <code>{organization === own ? <Link to={sessionPath(id)}>{id}</Link> : id}</code>
      ),
    },
    ...(isOperator
      ? [{ name: 'Organization', cell: ({ organization_id: id }: Waiting) => <code>{id}</code> }]
      : []),
    { name: 'Since', cell: ({ since }: Waiting) => <Time at={since} /> },
    {
      name: 'Waits for',
      cell: ({ since }: Waiting) => spanOf(now - Date.parse(since)),
    },
    {
      name: 'Estimate',
      cell: ({ estimated_wait_seconds: seconds }: Waiting) =>
        seconds === null ? (
          <span class="muted">unknown: no session got a browser lately</span>
        ) : (
          formatEstimate(seconds)
        ),
    },
    { name: 'Why', cell: ({ why }: Waiting) => why },
  ];
  const left = queue.total - queue.waiting.length;
  return (
    <>
      <Table
        label="The queue"
        columns={columns}
        rows={queue.waiting}
        keyOf={({ session_id: id }) => id}
      />
      {left > 0 && <p class="muted">{left} more wait behind these.</p>}
    </>
  );
}

const spanOf = (ms: number) => formatSpan(Math.max(0, Math.floor(ms / 1000) * 1000) || 0);

function NoSessionWaits() {
  const ask = `curl ${SERVICE_URL}/api/queue -H "Authorization: Bearer $API_KEY"`;
  return (
    <div class="card">
      <h3>No session waits</h3>
      <p class="muted">
        A session waits while no server has a browser for it: all are full, drain, or are short of
        memory. It then appears here with its place and the reason.
      </p>
      <CopyBlock title="Ask for the queue" text={ask} />
    </div>
  );
}
