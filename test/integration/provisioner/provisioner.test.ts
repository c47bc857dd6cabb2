import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decidePool, POLICY } from '#src/kernel/domain/fleet/pool-policy.ts';
import { nextTurn } from '#src/kernel/async/sleep.ts';
import { eventually } from '#test/support/service/service.ts';
import { openFleet, type FleetServer } from '#test/support/service/fleet.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

const ARRIVES_EVERY_MS = 200;

/** The idle browsers of a server; null while one is launching or ending. */
async function idleOf(server: FleetServer): Promise<string[] | null> {
  const own = (await fleet.workloads()).filter(({ serverId }) => serverId === server.id);
  const isSettled = own.every(({ status }) => status === 'idle' || status === 'busy');
  return isSettled ? own.filter(({ status }) => status === 'idle').map(({ id }) => id) : null;
}

async function waiting(server: FleetServer, count: number): Promise<string[]> {
  return eventually(async () => {
    const idle = await idleOf(server);
    return idle?.length === count ? idle : null;
  }, `${count} browsers are idle`);
}

const NO_LEAKS = { browsers: 0, sessions: 0 };

describe('a provisioner that is killed and started again', () => {
  test('adopts the running browsers: sessions keep theirs, idle ones stay idle', async () => {
    const first = await fleet.join({ limits: { minIdle: 1, maxIdle: 1 } });
    const id = await fleet.create();
    const { workload } = await fleet.waitForStatus(id, 'active');
    const [idle] = await waiting(first, 1);
    first.kill();

    const second = await fleet.join({ id: first.id, machine: first.machine });
    expect(second.provisioner.leaks()).toEqual(NO_LEAKS);
    expect(await fleet.read(id)).toMatchObject({ status: 'active', workload });
    expect(await waiting(second, 1)).toEqual([idle]);
    const [event] = (await fleet.serverEvents(first.id, 'server.reconciled')).slice(-1);
    expect(event?.data).toMatchObject({ adopted: 2, stopped: 0, failed: 0, leaks: NO_LEAKS });

    // An adopted browser is used like any other.
    const next = await fleet.create();
    expect((await fleet.waitForStatus(next, 'active')).workload?.workloadId).toBe(idle);
    await fleet.sendSessionCommand(id, { type: 'StopSession', reason: 'user', now: Date.now() });
    await fleet.waitForStatus(id, 'stopped');
    const running = (await second.machine.list()).map(({ workloadId }) => workloadId);
    expect(running).not.toContain(workload?.workloadId);
    second.machine.crash(idle ?? '');
    expect(await fleet.waitForStatus(next, 'failed')).toMatchObject({
      endedReason: 'browser_crashed',
    });
  });

  test('terminates the browser of a session that was stopped while no provisioner ran', async () => {
    const first = await fleet.join();
    const id = await fleet.create();
    const { workload } = await fleet.waitForStatus(id, 'active');
    first.kill();
    await fleet.sendSessionCommand(id, { type: 'StopSession', reason: 'user', now: Date.now() });

    const second = await fleet.join({ id: first.id, machine: first.machine });
    expect((await fleet.waitForStatus(id, 'stopped')).endedReason).toBe('user');
    const running = (await second.machine.list()).map(({ workloadId }) => workloadId);
    expect(running).not.toContain(workload?.workloadId);
    expect(second.provisioner.leaks()).toEqual(NO_LEAKS);
  });

  test('fails the sessions whose browsers are gone, and serves those that it had accepted', async () => {
    const first = await fleet.join({ limits: { minIdle: 1, maxIdle: 1, max: 1 } });
    const lost = await fleet.create();
    await fleet.waitForStatus(lost, 'active');
    // No idle browser can serve its options: it is assigned, and waits for room.
    const taken = await fleet.create({ locale: 'fr-FR' });
    first.kill();
    for (const { workloadId } of await first.machine.list()) await first.machine.stop(workloadId);

    const second = await fleet.join({ id: first.id, machine: first.machine });
    expect(await fleet.read(lost)).toMatchObject({ status: 'failed', endedReason: 'server_lost' });
    await fleet.waitForStatus(taken, 'active');
    expect(second.provisioner.leaks()).toEqual(NO_LEAKS);
  });

  test('stops browsers that belong to no session and to no pool', async () => {
    const first = await fleet.join();
    await waiting(first, 1);
    first.kill();
    const spec = { vncPassword: 'secret12', screen: { width: 800, height: 600 } };
    await first.machine.launch({ workloadId: 'wl_stray', ...spec });

    const second = await fleet.join({ id: first.id, machine: first.machine });
    const running = (await second.machine.list()).map(({ workloadId }) => workloadId);
    expect(running).not.toContain('wl_stray');
    const [event] = (await fleet.serverEvents(first.id, 'server.reconciled')).slice(-1);
    expect(event?.data).toMatchObject({ stopped: 1, leaks: NO_LEAKS });
  });
});

test('a browser that crashes as soon as its session is active was assigned before it ended', async () => {
  const server = await fleet.join({ limits: { minIdle: 1, maxIdle: 1 } });
  const [idle = ''] = await waiting(server, 1);
  const id = await fleet.create();
  while ((await fleet.read(id)).status !== 'active') await nextTurn();
  server.machine.crash(idle);
  await fleet.waitForStatus(id, 'failed');
  const isOver = async () => {
    const types = await fleet.workloadEvents(idle);
    return types.includes('workload.terminated') && types;
  };
  expect((await eventually(isOver, 'its end is reported')).slice(-3)).toEqual([
    'workload.idle',
    'workload.assigned',
    'workload.terminated',
  ]);
});

test('the leak gauges of the fleet are the sums over its servers', async () => {
  const servers = [await fleet.join(), await fleet.join()];
  expect(await fleet.leaks()).toEqual(NO_LEAKS);
  const done = { adopted: 0, stopped: 0, failed: 0, corrected: 0 };
  for (const [at, { id }] of servers.entries()) {
    const found = { browsers: 1, sessions: at };
    await fleet.sendServerCommand(id, { type: 'ReportReconciled', ...done, leaks: found });
  }
  const leaks = async () => (await fleet.leaks()).browsers === 2 && (await fleet.leaks());
  expect(await eventually(leaks, 'both servers are counted')).toEqual({ browsers: 2, sessions: 1 });
  for (const server of servers) await server[Symbol.asyncDispose]();
  await eventually(
    async () => (await fleet.leaks()).browsers === 0,
    'servers that have left count no more',
  );
});

test('reconciliation finds a browser whose end was not observed, and fails its session', async () => {
  const server = await fleet.join();
  const id = await fleet.create();
  const { workload } = await fleet.waitForStatus(id, 'active');
  await server.machine.stop(workload?.workloadId ?? '');
  server.provisioner.reconcileSoon();
  expect(await fleet.waitForStatus(id, 'failed')).toMatchObject({ endedReason: 'browser_crashed' });
  await waiting(server, 1);
  expect(server.provisioner.leaks()).toEqual(NO_LEAKS);
});

describe('a launch that fails', () => {
  test('is retried, then on another server, before its session fails', async () => {
    const broken = await fleet.join({ failRate: 1 });
    const options = { locale: 'fr-FR' };
    const alone = await fleet.create(options);
    const failed = await fleet.waitForStatus(alone, 'failed');
    expect(failed).toMatchObject({ endedReason: 'launch_failed', creditsUsed: 0 });
    expect(failed.triedServers).toBeUndefined();

    const good = await fleet.join({ limits: { minIdle: 0, maxIdle: 0, max: 1 } });
    const [first, second] = [await fleet.create(options), await fleet.create(options)];
    const served = await eventually(async () => {
      const states = await Promise.all([first, second].map(fleet.read));
      return states.find(({ status }) => status === 'active') ?? null;
    }, 'the good server serves one session');
    expect(served.workload?.serverId).toBe(good.id);
    const other = served.id === first ? second : first;
    await eventually(
      async () => (await fleet.read(other)).triedServers !== undefined,
      'the request is requeued',
    );
    expect(await fleet.read(other)).toMatchObject({
      status: 'queued',
      assignment: null,
      triedServers: [broken.id],
    });
    // The other server had no room yet.
    await fleet.sendSessionCommand(served.id, {
      type: 'StopSession',
      reason: 'user',
      now: Date.now(),
    });
    expect((await fleet.waitForStatus(other, 'active')).workload?.serverId).toBe(good.id);
  });
});

describe('a server that is drained', () => {
  test('accepts no request, retires idle browsers, keeps sessions, and reports when it is empty', async () => {
    const server = await fleet.join();
    const id = await fleet.create();
    await fleet.waitForStatus(id, 'active');
    await waiting(server, 1);
    await fleet.sendServerCommand(server.id, { type: 'Drain' });
    await waiting(server, 0);
    const other = await fleet.join();
    for (const _ of Array.from({ length: 3 })) {
      const next = await fleet.create();
      expect((await fleet.waitForStatus(next, 'active')).workload?.serverId).toBe(other.id);
    }
    expect((await fleet.read(id)).status).toBe('active');
    expect((await fleet.serverOf(server.id))?.status).toBe('draining');

    await fleet.sendSessionCommand(id, { type: 'StopSession', reason: 'user', now: Date.now() });
    expect(await fleet.waitForStatus(id, 'stopped')).toMatchObject({ endedReason: 'user' });
    const isDrained = async () => (await fleet.serverOf(server.id))?.status === 'drained';
    await eventually(isDrained, 'the server has drained');
    expect(await server.machine.list()).toEqual([]);

    await fleet.sendServerCommand(server.id, { type: 'Undrain' });
    await waiting(server, 1);
  });

  test('goes on draining after a restart of its provisioner', async () => {
    const server = await fleet.join();
    await waiting(server, 1);
    await fleet.sendServerCommand(server.id, { type: 'Drain' });
    server.kill();
    const again = await fleet.join({ id: server.id, machine: server.machine });
    await waiting(again, 0);
    const id = await fleet.create();
    const isDrained = async () => (await fleet.serverOf(server.id))?.status === 'drained';
    await eventually(isDrained, 'the server has drained');
    expect((await fleet.read(id)).assignment).toBeNull();
  });
});

test('a server that was considered lost terminates its browsers and joins again', async () => {
  const server = await fleet.join();
  const before = await waiting(server, 1);
  await fleet.sendServerCommand(server.id, { type: 'ReportLost' });
  await eventually(
    async () => (await fleet.serverOf(server.id))?.status === 'live',
    'the server is live again',
  );
  const after = await waiting(server, 1);
  expect(after).not.toEqual(before);
  await fleet.waitForStatus(await fleet.create(), 'active');
});

test('no more browsers are launched than are requested', async () => {
  const server = await fleet.join({ limits: { minIdle: 3, maxIdle: 3, max: 20 } });
  await waiting(server, 3);
  const asked = [await fleet.create({ locale: 'fr-FR' }), await fleet.create({ locale: 'de-DE' })];
  asked.push(await fleet.create({ timezone: 'Europe/Rome' }));
  for (const id of asked) await fleet.waitForStatus(id, 'active');
  await waiting(server, 3);
  expect(await fleet.workloads()).toHaveLength(6);
});

test('arrivals raise the target of idle browsers, and the stored decision can be reproduced', async () => {
  const limits = { minIdle: 1, maxIdle: 20, max: 100 };
  const server = await fleet.join({ limits, launchMs: 500 });
  await waiting(server, 1);
  for (const _ of Array.from({ length: 40 })) {
    await fleet.create();
    // Requests that come at the same moment are a burst, which says nothing of the next ones.
    await pause(ARRIVES_EVERY_MS);
  }
  const [resized] = await eventually(async () => {
    const events = await fleet.serverEvents(server.id, 'server.pool-resized');
    return events.length > 0 && events;
  }, 'the pool is resized');
  const { policy, inputs, decision } = resized?.data ?? { inputs: null };
  expect(policy).toBe(POLICY);
  expect(inputs).toMatchObject({ target: 1, minIdle: 1, max: 100 });
  expect(inputs?.arrivals10s).toBeGreaterThan(0);
  expect(inputs === null ? null : decidePool(inputs)).toEqual(decision);
  // On a busy machine arrivals raise the target several times.
  await eventually(async () => {
    const [last] = (await fleet.serverEvents(server.id, 'server.pool-resized')).slice(-1);
    const target = (await fleet.serverOf(server.id))?.pool?.target;
    const idle = await idleOf(server);
    return target === last?.data.decision.target && idle?.length === target;
  }, 'as many browsers are idle as the last decision says');
});
