import { expect, test } from 'vitest';
import type { ServerEvent } from '#events/server.ts';
import type { WorkloadEvent } from '#events/workload.ts';
import { servers } from '#projections/servers.ts';
import { workloads } from '#projections/workloads.ts';
import { viewAfter } from '#test/support/history.ts';

const workload = { kind: 'workload', id: 'wl_1' } as const;
const server = { kind: 'server', id: 'srv_1' } as const;

const life: WorkloadEvent[] = [
  { type: 'workload.provisioning', data: { serverId: 'srv_1' } },
  { type: 'workload.launching', data: {} },
  { type: 'workload.idle', data: { launchMs: 412 } },
  { type: 'workload.assigned', data: { organizationId: 'org_acme', sessionId: 'ses_1' } },
  { type: 'workload.terminating', data: { reason: 'session_ended' } },
  { type: 'workload.terminated', data: { reason: 'session_ended', exitCode: 0 } },
];

test('a workload is listed by status and server until it is terminated', async () => {
  const statuses = ['provisioning', 'launching', 'idle', 'busy', 'terminating'];
  for (const [index, status] of statuses.entries()) {
    const after = await viewAfter(workloads, workload, ...life.slice(0, index + 1));
    expect(after).toMatchObject({ key: 'wl_1', view: { status, serverId: 'srv_1' } });
    expect(after.lists).toEqual(['all', 'server/srv_1', `status/${status}`].toSorted());
  }
  expect(await viewAfter(workloads, workload, ...life)).toMatchObject({ key: 'wl_1', view: null });
});

test('workloads are ordered by last change, the longest idle lowest', async () => {
  const launching = await viewAfter(workloads, workload, ...life.slice(0, 2));
  const idle = await viewAfter(workloads, workload, ...life.slice(0, 3));
  expect(idle.order).toBeGreaterThan(launching.order ?? Infinity);
});

test('a state that is carried forward leaves view and lists as they are', async () => {
  const carried = { archivedUpTo: 3 };
  for (let count = 1; count < life.length; count += 1) {
    const before = life.slice(0, count);
    const { order: _, ...expected } = await viewAfter(workloads, workload, ...before);
    const event: WorkloadEvent = { type: 'workload.carried-forward', data: carried };
    expect(await viewAfter(workloads, workload, ...before, event)).toMatchObject(expected);
  }
  const { order: _, ...expected } = await viewAfter(servers, server, joined());
  const event: ServerEvent = { type: 'server.carried-forward', data: carried };
  expect(await viewAfter(servers, server, joined(), event)).toMatchObject(expected);
});

test('the workloads view ignores server events', async () => {
  const { key } = await viewAfter<unknown, 'server'>(workloads, server, joined());
  expect(key).toBeNull();
});

function joined(): ServerEvent {
  return {
    type: 'server.joined',
    data: { ip: '10.0.0.7', browsers: 'simulated', poolMax: 4 },
  };
}

test.each([
  ['that joined', [joined()], 'live', ['current', 'live']],
  ['that drains', [joined(), { type: 'server.draining', data: {} }], 'draining', ['current']],
  ['that left', [joined(), { type: 'server.left', data: {} }], 'left', []],
  ['that was lost', [joined(), { type: 'server.lost', data: {} }], 'lost', []],
  [
    'that came back',
    [joined(), { type: 'server.lost', data: {} }, joined()],
    'live',
    ['current', 'live'],
  ],
] as [string, ServerEvent[], string, string[]][])(
  'a server %s is listed so',
  async (_, happened, status, lists) => {
    const after = await viewAfter(servers, server, ...happened);
    expect(after).toMatchObject({ key: 'srv_1', view: { id: 'srv_1', status, poolMax: 4 }, lists });
  },
);
