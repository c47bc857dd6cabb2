import { Table, type Column } from '../shell/table.tsx';

type Counts = {
  connections: number;
  bytes_sent: number;
  bytes_received: number;
  refused: number;
};
type Host = Counts & { host: string; refused_reason: keyof typeof REASONS | null };

/** `egress` of GET /api/sessions/{id}. */
export type Egress = {
  allow: string[] | null;
  deny: string[];
  proxy: { server: string; username: string | null } | null;
  enforced: 'network' | 'browser' | 'simulated' | null;
  traffic: (Counts & { hosts: Host[] }) | null;
};

const ENFORCED = {
  network: 'enforced by its network: there is no way past them',
  browser: 'enforced by the browser alone: who steers it may get past them',
  simulated: 'not enforced: its browser is simulated',
} as const;

const REASONS = {
  denied: 'denied by a rule',
  not_allowed: 'not on the list of allowed hosts',
  private_network: 'in a private network',
  unresolved: 'its name has no address',
  too_many: 'too many connections at once',
} as const;

/** What the session's browser may connect to, what it did, and what was refused. */
export function EgressRules({ egress }: { egress: Egress }) {
  const { allow, deny, proxy, enforced, traffic } = egress;
  return (
    <section aria-label="Egress" class="egress">
      <h2>Egress</h2>
      <dl class="facts card">
        <Fact name="Allowed" text={allow === null ? 'all that is not denied' : listed(allow)} />
        <Fact name="Denied" text={listed(deny)} />
        {proxy !== null && <Fact name="Through" text={textOf(proxy)} />}
        <Fact
          name="Rules are"
          text={enforced === null ? 'enforced once it has a browser' : ENFORCED[enforced]}
        />
      </dl>
      {traffic === null ? (
        <p class="muted">No traffic is recorded yet.</p>
      ) : (
        <>
          <p>
            {traffic.connections} connections, {formatSize(traffic.bytes_sent)} sent,{' '}
            {formatSize(traffic.bytes_received)} received, {traffic.refused} refused.
          </p>
          <Table label="Hosts" columns={COLUMNS} rows={traffic.hosts} keyOf={({ host }) => host} />
        </>
      )}
    </section>
  );
}

const COLUMNS: readonly Column<Host>[] = [
  { name: 'Host', cell: ({ host }) => <code>{host}</code> },
  { name: 'Connections', cell: ({ connections }) => connections, isNumber: true },
  { name: 'Sent', cell: (host) => formatSize(host.bytes_sent), isNumber: true },
  { name: 'Received', cell: (host) => formatSize(host.bytes_received), isNumber: true },
  { name: 'Refused', cell: ({ refused }) => refused, isNumber: true },
  {
    name: 'Why',
    cell: ({ refused_reason: reason }) => (reason === null ? '' : REASONS[reason]),
  },
];

function Fact({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}

function listed(patterns: readonly string[]): string {
  return patterns.length === 0 ? 'none' : patterns.join(', ');
}

function textOf({ server, username }: NonNullable<Egress['proxy']>): string {
  return username === null ? server : `${server} as ${username}`;
}

/** `812 B`, `12.4 kB`, `3.1 MB`. */
function formatSize(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000
    ? `${(bytes / 1_000).toFixed(1)} kB`
    : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
