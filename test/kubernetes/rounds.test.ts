import { readdirSync, readlinkSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { selectorFor } from '#src/browsers/kubernetes/naming.ts';
import { kubectl, podsEnvironment } from '#test/support/kubernetes/cluster.ts';
import { json } from '#test/support/clients/command-line.ts';
import { churn, untilPoolIsIdle } from '#test/support/load/pool-churn.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';

/**
 * Sessions one after the other on a small pool of browsers in Pods: no Pod, volume, watch or socket
 * is left behind.
 */
const ROUNDS = 100;
const POOL = 3;
const TIERS = { max: { requests_per_minute: 1e6, concurrent_sessions: 1e4, credits: 1e9 } };
/** Connections that a pool of them may hold open at one look and not at another. */
const SOCKETS_SPARE = 6;

let service: RunningService;
/** The server's own Pods and Secrets: other releases of the namespace have theirs. */
let listed: (kind: 'pods' | 'secrets') => string[];
let selector: string;
beforeAll(async () => {
  service = await startService({
    ...podsEnvironment(),
    ...{ POOL_MIN_IDLE: `${POOL}`, POOL_MAX_IDLE: `${POOL}`, POOL_MAX: `${POOL}` },
    TIERS: JSON.stringify(TIERS),
  });
  const [server] = (await json(service, 'servers', 'list')) as { id: string }[];
  selector = selectorFor(server?.id ?? 'none');
  listed = (kind) => kubectl('get', kind, '-l', selector, '-o', 'name').split('\n').filter(Boolean);
}, 600_000);
afterAll(() => service?.[Symbol.asyncDispose]());

test(`after ${ROUNDS} sessions no Pod, volume, watch or socket is left`, async () => {
  const count = async () => listed('pods').length;
  await untilPoolIsIdle(service, count, POOL);
  // The first sessions open what is kept open.
  await churn(service, POOL * 2, POOL);
  await untilPoolIsIdle(service, count, POOL);
  const before = { watches: podWatches(), sockets: sockets(service.pid) };
  await churn(service, ROUNDS, POOL);
  await untilPoolIsIdle(service, count, POOL);
  // A browser that runs needs none.
  expect(listed('secrets')).toEqual([]);
  await eventually(() => podWatches() <= before.watches, 'no watch is left');
  await eventually(() => sockets(service.pid) <= before.sockets + SOCKETS_SPARE, 'nor a socket');
  await auditLog(service);
  await service.end('SIGTERM');
  expect(listed('pods')).toEqual([]);
  // Their volumes are folders of the node, which the kubelet removes with what it has of a Pod.
  await eventually(() => podsOfKubelet().length === 0, 'the kubelet has nothing of them');
});

/** The watches of Pods that the API server has open for anybody. */
function podWatches(): number {
  const metrics = kubectl('get', '--raw', '/metrics').split('\n');
  return metrics
    .filter((line) => line.startsWith('apiserver_longrunning_requests{'))
    .filter((line) => /resource="pods"/.test(line) && /verb="WATCH"/.test(line))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** What the node itself has of the server's Pods. */
function podsOfKubelet(): unknown[] {
  const node = kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}');
  const answer = kubectl('get', '--raw', `/api/v1/nodes/${node}/proxy/pods`);
  const { items } = JSON.parse(answer) as { items: { metadata: Labelled }[] | null };
  const wanted = selector.split(',').map((one) => one.split('=') as [string, string]);
  return (items ?? []).filter(({ metadata: { labels } }) =>
    wanted.every(([name, value]) => labels?.[name] === value),
  );
}

type Labelled = { labels?: Record<string, string> };

function sockets(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`).startsWith('socket:');
    } catch {
      return false; // It was closed meanwhile.
    }
  }).length;
}
