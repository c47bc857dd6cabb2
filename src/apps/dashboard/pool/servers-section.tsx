import { useEffect, useState } from 'preact/hooks';
import { post, sentenceOf } from '../api/api-client.ts';
import { eventsAddress } from '../operator/events-address.ts';
import { Confirm } from '../shell/confirm.tsx';
import { CopyBlock } from '../shell/copy-block.tsx';
import { Link } from '../shell/link.tsx';
import { Failure, Loading } from '../shell/states.tsx';
import { Table } from '../shell/table.tsx';
import { useResource } from '../api/use-resource.ts';
import { formatShare } from './units.ts';

/** A server of GET /api/operator/servers. */
export type Server = {
  id: string;
  ip: string;
  status: 'live' | 'draining' | 'drained';
  pool_max: number;
  browser: string | null;
  target: number | null;
  limited_by: 'memory' | 'cpu' | null;
  leaks: number | null;
} & Record<'idle' | 'busy' | 'provisioning' | 'launching' | 'terminating', number>;

const MARKS = { live: '●', draining: '◑', drained: '○' } as const;
const EVERY_MS = 5_000;
type Asked = { server: Server; verb: 'drain' | 'undrain' };

/** The servers with their load; an operator takes one out of service, and back. */
export function ServersSection({ onServers }: { onServers: (ids: readonly string[]) => void }) {
  const servers = useResource<{ servers: Server[] }>('/api/operator/servers', {
    everyMs: EVERY_MS,
  });
  const [asked, setAsked] = useState<Asked | null>(null);
  const [done, setDone] = useState<string | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  async function answer(isYes: boolean) {
    setAsked(null);
    if (!isYes || asked === null) return;
    const { server, verb } = asked;
    setRefused(null);
    try {
      await post(`/api/operator/servers/${encodeURIComponent(server.id)}/${verb}`, {});
      setDone(`Server ${server.id} ${verb === 'drain' ? 'drains' : 'takes sessions again'}.`);
    } catch (error) {
      setRefused(sentenceOf(error));
    }
    servers.reload();
  }
  const { data, failure, reload } = servers;
  const ids = data?.servers.map(({ id }) => id).join(' ');
  useEffect(() => onServers(ids?.split(' ').filter(Boolean) ?? []), [ids]);
  return (
    <section aria-labelledby="servers-title" class="pool-section">
      <div class="title">
        <h2 id="servers-title">Servers</h2>
        <p class="muted small" role="status">
          {done}
        </p>
      </div>
      <Failure what="The servers could not be read" failure={failure} retry={reload} />
      <Failure what="The server’s status was not changed" failure={refused} />
      {data === null && failure === null && <Loading what="the servers" />}
      {data?.servers.length === 0 && <NoServer />}
      {data !== null && data.servers.length > 0 && (
        <Table
          label="Servers"
          columns={columnsOf(setAsked)}
          rows={data.servers}
          keyOf={({ id }) => id}
        />
      )}
      {asked !== null && <Question asked={asked} onAnswer={(isYes) => void answer(isYes)} />}
    </section>
  );
}

function columnsOf(ask: (asked: Asked) => void) {
  return [
    {
      name: 'Server',
      cell: ({ id, ip }: Server) => (
        <span class="pool-two">
          <Link to={eventsAddress({ kind: 'server', id })}>
            <code>{id}</code>
          </Link>
          <span class="muted small">{ip}</span>
        </span>
      ),
    },
    {
      name: 'Status',
      cell: ({ status }: Server) => (
        <span class={`status ${status === 'live' ? 'active' : 'queued'}`}>
          <span aria-hidden="true">{MARKS[status]}</span> {status}
        </span>
      ),
    },
    { name: 'Load', cell: (server: Server) => <Load server={server} /> },
    {
      name: 'Idle',
      cell: ({ idle, target }: Server) => (
        <span>
          {idle} <span class="muted">{target === null ? '' : `of ${target} wanted`}</span>
        </span>
      ),
    },
    {
      name: 'In change',
      cell: ({ provisioning, launching, terminating }: Server) =>
        changesOf({ provisioning, launching, terminating }),
    },
    {
      name: 'Limited by',
      cell: ({ limited_by: limit }: Server) =>
        limit === null ? 'nothing' : <span class="status queued">{limit}</span>,
    },
    { name: 'Leaks', cell: ({ leaks }: Server) => <Leaks leaks={leaks} /> },
    { name: 'Browser', cell: ({ browser }: Server) => browser ?? 'unknown' },
    {
      name: 'Action',
      cell: (server: Server) => {
        const verb = server.status === 'live' ? ('drain' as const) : ('undrain' as const);
        return (
          <button
            type="button"
            aria-label={`${verb === 'drain' ? 'Drain' : 'Undrain'} ${server.id}`}
            onClick={() => ask({ server, verb })}
          >
            {verb === 'drain' ? 'Drain' : 'Undrain'}
          </button>
        );
      },
    },
  ];
}

function Load({ server: { id, busy, pool_max: max } }: { server: Server }) {
  return (
    <span class="pool-two">
      <span>
        {busy} of {max} busy <span class="muted">({formatShare(busy / max)})</span>
      </span>
      <meter min={0} max={max} value={busy} aria-label={`Load of ${id}`} />
    </span>
  );
}

function changesOf(counts: Record<string, number>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  return some.length === 0 ? 'none' : some.map(([name, count]) => `${count} ${name}`).join(', ');
}

function Leaks({ leaks }: { leaks: number | null }) {
  if (leaks === null) return <span class="muted">not compared yet</span>;
  return leaks === 0 ? <>0</> : <span class="status failed">✕ {leaks}</span>;
}

type QuestionProps = { asked: Asked; onAnswer: (isYes: boolean) => void };

function Question({ asked: { server, verb }, onAnswer }: QuestionProps) {
  const { id, busy } = server;
  if (verb === 'undrain')
    return (
      <Confirm question={`Undrain ${id}?`} verb="Undrain" onAnswer={onAnswer}>
        It takes new sessions again.
      </Confirm>
    );
  const run = busy === 1 ? '1 session runs' : `${busy} sessions run`;
  return (
    <Confirm question={`Drain ${id}?`} verb="Drain" onAnswer={onAnswer}>
      It takes no new sessions. {run} on it now, and each goes on until it ends.
    </Confirm>
  );
}

function NoServer() {
  return (
    <div class="card">
      <h3>No server</h3>
      <p class="muted">
        A server is a machine with the role provisioner. It joins by itself when it starts, and
        sessions wait until one does.
      </p>
      <CopyBlock title="List the servers" text="./bss servers list" />
    </div>
  );
}
