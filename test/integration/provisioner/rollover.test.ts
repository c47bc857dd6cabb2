import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import { eventually } from '#test/support/service/service.ts';
import { openFleet, type FleetServer } from '#test/support/service/fleet.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** A newer build of the browsers, on a server whose pool is warm. */

useVirtualTime();

let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

const NEWER = { version: '151.0.7900.12', builtAt: Date.UTC(2026, 10, 20) };

async function running({ machine }: FleetServer): Promise<string[]> {
  return (await machine.list()).map(({ workloadId }) => workloadId);
}

/** A host that keeps the least number of ready browsers that an end has left. */
async function openWatchedHost() {
  const machine = await createSimulatedBrowsers({ launchMs: 5, failRate: 0 });
  const { stop } = machine;
  let lowest = Infinity;
  machine.stop = async (workloadId) => {
    await stop(workloadId);
    const left = (await machine.list()).filter(({ adoptable }) => adoptable !== null);
    lowest = Math.min(lowest, left.length);
  };
  onTestFinished(() => machine[Symbol.asyncDispose]());
  return { machine, lowest: () => lowest };
}

async function untilIdle(server: FleetServer, count: number): Promise<string[]> {
  return eventually(async () => {
    const own = (await fleet.workloads()).filter(({ serverId }) => serverId === server.id);
    const isSettled = own.every(({ status }) => status === 'idle' || status === 'busy');
    const idle = own.filter(({ status }) => status === 'idle').map(({ id }) => id);
    return isSettled && idle.length === count && idle;
  }, `${count} browsers are idle`);
}

describe('when a newer build of the browser is there', () => {
  test('idle browsers are replaced, never fewer than the target, and a session goes on', async () => {
    const { machine, lowest } = await openWatchedHost();
    const server = await fleet.join({ machine, limits: { minIdle: 2, maxIdle: 2, max: 8 } });
    const id = await fleet.create();
    const { workload } = await fleet.waitForStatus(id, 'active');
    const old = await untilIdle(server, 2);

    server.machine.renew(NEWER);
    const idle = await eventually(async () => {
      const now = await untilIdle(server, 2);
      return now.every((one) => !old.includes(one)) && now;
    }, 'both idle browsers are of the newer build');
    expect(idle.some((one) => server.machine.isOutdated?.(one))).toBe(false);
    // The session's browser and two idle ones were there after each end of an old one.
    expect(lowest()).toBe(3);
    expect(await fleet.read(id)).toMatchObject({ status: 'active', workload });
    expect(await running(server)).toContain(workload?.workloadId);

    // The next session gets a new one; the old one ends with its session.
    const next = await fleet.create();
    const second = await fleet.waitForStatus(next, 'active');
    expect(idle).toContain(second.workload?.workloadId);
    await fleet.sendSessionCommand(id, { type: 'StopSession', reason: 'user', now: Date.now() });
    await fleet.waitForStatus(id, 'stopped');
    expect(await running(server)).not.toContain(workload?.workloadId);
  });

  test('the idle browser ends as outdated, and no session’s browser does', async () => {
    const server = await fleet.join({ limits: { minIdle: 1, maxIdle: 1, max: 8 } });
    const ids = [await fleet.create(), await fleet.create(), await fleet.create()];
    for (const id of ids) await fleet.waitForStatus(id, 'active');
    const [old = ''] = await untilIdle(server, 1);
    server.machine.renew(NEWER);
    await eventually(async () => !(await running(server)).includes(old), 'the idle one is gone');
    await untilIdle(server, 1);
    const reason = await eventually(() => endOf(old), 'its end is recorded');
    expect(reason).toBe('retired');
    for (const id of ids) {
      const { status, workload } = await fleet.read(id);
      expect(status).toBe('active');
      expect(await running(server)).toContain(workload?.workloadId);
    }
  });

  test('the server tells it in its state, once', async () => {
    const server = await fleet.join();
    expect(await fleet.serverOf(server.id)).toMatchObject({ browser: { version: 'simulated' } });
    const newer = { version: NEWER.version, builtAt: '2026-11-20T00:00:00.000Z' };
    server.machine.renew(NEWER);
    server.machine.renew(NEWER);
    await eventually(
      async () => (await fleet.serverOf(server.id))?.browser?.version === NEWER.version,
      'the state has the newer version',
    );
    const updates = await fleet.serverEvents(server.id, 'server.browser-updated');
    expect(updates.map(({ data }) => data)).toEqual([newer]);
  });

  test('browsers of an earlier process that are outdated are replaced too', async () => {
    const first = await fleet.join({ limits: { minIdle: 1, maxIdle: 1 } });
    const [old = ''] = await untilIdle(first, 1);
    first.kill();
    const isOutdated = (workloadId: string) => workloadId === old;
    const machine = { ...first.machine, build: () => NEWER, isOutdated };
    const second = await fleet.join({ id: first.id, machine });
    await eventually(async () => !(await running(second)).includes(old), 'the old one is gone');
    await untilIdle(second, 1);
    const joined = await fleet.serverEvents(first.id, 'server.joined');
    expect(joined.at(-1)?.data.browser?.version).toBe(NEWER.version);
  });

  test('a server that stays full replaces one after the other in its place', async () => {
    const server = await fleet.join({ limits: { minIdle: 2, maxIdle: 2, max: 2 }, fullMs: 20 });
    const old = await untilIdle(server, 2);
    server.machine.renew(NEWER);
    await eventually(
      async () => (await running(server)).every((one) => !old.includes(one)),
      'both are of the newer build',
    );
    await untilIdle(server, 2);
  });

  test('a draining server launches no replacement', async () => {
    const server = await fleet.join({ limits: { minIdle: 1, maxIdle: 1 } });
    await untilIdle(server, 1);
    await fleet.sendServerCommand(server.id, { type: 'Drain' });
    server.machine.renew(NEWER);
    await eventually(
      async () => (await fleet.serverOf(server.id))?.status === 'drained',
      'the server has drained',
    );
    expect(await running(server)).toEqual([]);
  });
});

/** Why a browser has ended; null: its end is not recorded. */
async function endOf(id: string): Promise<string | null> {
  const { eventStore } = fleet.context;
  for await (const { type, data } of eventStore.history<'workload'>({ kind: 'workload', id }))
    if (type === 'workload.terminated') return data.reason;
  return null;
}
