import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { newId } from '#src/kernel/ids.ts';
import type { BrowserSpec } from '#src/browsers/browsers.ts';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import type { EgressProxy } from '#src/browsers/egress-endpoint.ts';
import { createOpenEgress } from '#src/features/egress/open-egress.ts';
import { createSession } from '#test/support/examples.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { eventually } from '#test/support/service/service.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

const POOL = { minIdle: 1, maxIdle: 4, max: 4 };
const WAITING = 40;

async function createMany(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (const _ of Array.from({ length: count })) ids.push(await fleet.create());
  return ids;
}
async function activeOf(ids: readonly string[]): Promise<string[]> {
  const states = await Promise.all(ids.map(fleet.read));
  return states.filter(({ status }) => status === 'active').map(({ id }) => id);
}
async function untilActive(ids: readonly string[], count: number): Promise<string[]> {
  return eventually(async () => {
    const active = await activeOf(ids);
    return active.length === count && active;
  }, `${count} sessions are active`);
}
/** The sequence of the event by which an active session has become so. */
async function activatedAt(id: string, organizationId: string): Promise<number> {
  const session = { kind: 'session', organizationId, id } as const;
  const last = await fleet.context.eventStore.readLast<'session'>(session);
  expect(last?.type).toBe('session.activated');
  return last?.sequence ?? 0;
}
async function stop(id: string): Promise<void> {
  await fleet.sendSessionCommand(id, { type: 'StopSession', reason: 'user', now: Date.now() });
  await fleet.waitForStatus(id, 'stopped');
}

describe.each([1, 2])('with %i servers full and forty requests of one organization', (count) => {
  test('the request of another one gets the next free browser, and all are served', async () => {
    for (const _ of Array.from({ length: count })) await fleet.join({ limits: POOL });
    const room = POOL.max * count;
    const all = await createMany(room + WAITING);
    const served = await untilActive(all, room);
    const late = await fleet.create({}, 'beta');

    await stop(served[0] ?? '');
    await fleet.waitForStatus(late, 'active');
    expect(await activeOf(all)).toHaveLength(room - 1);

    await stop(late);
    const left = new Set(all.slice());
    left.delete(served[0] ?? '');
    // Each gets a browser once one is free, although items of the queue were given back before.
    while (left.size > 0) {
      const active = await untilActive([...left], Math.min(room, left.size));
      for (const id of active) {
        await stop(id);
        left.delete(id);
      }
    }
  });
});

test('a provisioner that is killed after it served out of order loses no request', async () => {
  const first = await fleet.join({ limits: { ...POOL, max: 1 } });
  const all = await createMany(5);
  const [active] = await untilActive(all, 1);
  const late = await fleet.create({}, 'beta');
  await stop(active ?? '');
  await fleet.waitForStatus(late, 'active');
  first.kill();

  await fleet.join({ limits: { ...POOL, max: 5 } });
  await untilActive(all, 4);
});

test('a provisioner that is started serves those that wait already by turns', async () => {
  const first = await fleet.join({ limits: { ...POOL, max: 1 } });
  const [busy] = await createMany(1);
  await untilActive([busy ?? ''], 1);
  const all = await createMany(10);
  const late = await fleet.create({}, 'beta');
  first.kill();

  await fleet.join({ limits: { ...POOL, max: 2 } });
  await fleet.waitForStatus(late, 'active');
  expect((await activeOf(all)).length).toBeLessThanOrEqual(1);
});

describe('a launch whose requester has gone', () => {
  const options = { timezone: 'Asia/Tokyo' };

  test('is cancelled, and costs its session one credit', async () => {
    const server = await fleet.join({
      limits: { ...POOL, minIdle: 0, maxIdle: 0 },
      launchMs: 3_600_000,
    });
    const id = await fleet.create(options);
    await eventually(async () => (await fleet.read(id)).assignment !== null, 'it is assigned');
    await eventually(async () => (await server.machine.list()).length === 1, 'it is launched');
    await stop(id);
    expect(await fleet.read(id)).toMatchObject({ startedAt: null, creditsUsed: 1 });
    await eventually(async () => (await fleet.workloads()).length === 0, 'its workload has ended');
    expect(await server.machine.list()).toEqual([]);
    expect(server.provisioner.leaks()).toEqual({ browsers: 0, sessions: 0 });
  });

  test('launches nothing where its proxy was still being opened, and closes that', async () => {
    const opening = Promise.withResolvers<EgressProxy>();
    const asked = vi.fn(() => opening.promise);
    const server = await fleet.join({
      limits: { ...POOL, minIdle: 0, maxIdle: 0 },
      openEgress: asked,
    });
    const id = newId('ses');
    await fleet.sendSessionCommand(id, createSession({ now: Date.now(), egress: { deny: [] } }));
    await eventually(() => asked.mock.calls.length === 1, 'its proxy is being opened');
    await stop(id);
    await eventually(async () => (await fleet.workloads()).length === 0, 'its workload has ended');
    const proxy = await createOpenEgress()({ deny: [] }, id);
    opening.resolve(proxy);
    await eventually(() => proxy.closed.aborted, 'the proxy is closed');
    expect(await server.machine.list()).toEqual([]);
    expect(server.provisioner.leaks()).toEqual({ browsers: 0, sessions: 0 });
  });
});

test('a core goes to the organization with the fewest launches under way', async () => {
  const limits = { ...POOL, minIdle: 0, maxIdle: 0, max: 8, launchesAtOnce: 1 };
  await fleet.join({ limits, launchMs: 50 });
  const zones = ['Asia/Tokyo', 'Europe/Paris', 'Africa/Cairo', 'America/Lima', 'Asia/Dubai'];
  const ids = await Promise.all(zones.map((timezone) => fleet.create({ timezone })));
  const late = await fleet.create({ timezone: 'Europe/Zurich' }, 'beta');
  await fleet.waitForStatus(late, 'active');
  await untilActive(ids, ids.length);
  const others = await Promise.all(ids.map((id) => activatedAt(id, 'acme')));
  expect(Math.max(...others)).toBeGreaterThan(await activatedAt(late, 'beta'));
});

test('a full server gives up one idle browser at a time for the special options of an organization', async () => {
  const machine = await createSimulatedBrowsers({ launchMs: 100, failRate: 0 });
  onTestFinished(() => machine[Symbol.asyncDispose]());
  let [launching, most] = [0, 0];
  async function launch(spec: BrowserSpec) {
    if (spec.timezone === undefined) return machine.launch(spec);
    launching += 1;
    most = Math.max(most, launching);
    return machine.launch(spec).finally(() => (launching -= 1));
  }
  const limits = { ...POOL, minIdle: 4, launchesAtOnce: 4 };
  await fleet.join({ limits, machine: { ...machine, launch } });
  const idle = async () => (await fleet.workloads()).filter(({ status }) => status === 'idle');
  await eventually(async () => (await idle()).length === POOL.max, 'the server is full');
  const zones = ['Asia/Tokyo', 'Europe/Paris', 'Africa/Cairo'];
  const ids = await Promise.all(zones.map((timezone) => fleet.create({ timezone })));
  await untilActive(ids, ids.length);
  expect(most).toBe(1);
});
