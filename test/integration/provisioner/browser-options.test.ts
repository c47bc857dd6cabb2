import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import {
  createSimulatedBrowsers,
  type SimulatedBrowsers,
} from '#src/browsers/simulated/simulated-browsers.ts';
import { dialRfb } from '#test/support/clients/rfb-client.ts';
import { eventually } from '#test/support/service/service.ts';
import { openFleet, type FleetServer } from '#test/support/service/fleet.ts';

/** The browser options of a session, and which browser it gets. */

let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

const ONE_IDLE = { minIdle: 1, maxIdle: 1, max: 4 };
const viewport = { width: 800, height: 600 };

async function idleOf(server: FleetServer): Promise<string[]> {
  const own = (await fleet.workloads()).filter(({ serverId }) => serverId === server.id);
  return own.filter(({ status }) => status === 'idle').map(({ id }) => id);
}

async function waiting(server: FleetServer, but: string[] = []): Promise<string> {
  const next = async () => (await idleOf(server)).find((id) => !but.includes(id)) ?? null;
  return eventually(next, 'a browser is idle');
}

/** The screen size of a session's browser. */
async function screenOf(id: string): Promise<[number, number]> {
  const { workload } = await fleet.read(id);
  if (workload === null) throw new Error(`${id} has no browser`);
  using viewer = await dialRfb(workload.vnc, workload.workloadId.slice(-8));
  return [viewer.width, viewer.height];
}

/** The types of a session's events. */
async function history(id: string): Promise<string[]> {
  const types: string[] = [];
  const session = { kind: 'session', organizationId: 'acme', id } as const;
  for await (const { type } of fleet.context.eventStore.history<'session'>(session))
    types.push(type);
  return types;
}

test('an idle browser is resized to the viewport, and the next idle one has the default size', async () => {
  const server = await fleet.join({ limits: ONE_IDLE });
  const first = await waiting(server);
  const id = await fleet.create({ viewport });
  expect((await fleet.waitForStatus(id, 'active')).workload?.workloadId).toBe(first);
  expect(await history(id)).toEqual(['session.requested', 'session.activated']);
  expect(await screenOf(id)).toEqual([800, 600]);

  const second = await waiting(server, [first]);
  const plain = await fleet.create();
  expect((await fleet.waitForStatus(plain, 'active')).workload?.workloadId).toBe(second);
  expect(await screenOf(plain)).toEqual([1280, 800]);
});

test.each([{ locale: 'fr-FR' }, { timezone: 'Europe/Rome', viewport }, { headless: true }])(
  'an idle browser that cannot serve %o stays idle',
  async (options) => {
    const server = await fleet.join({ limits: ONE_IDLE });
    const first = await waiting(server);
    const id = await fleet.create(options);
    const { workload } = await fleet.waitForStatus(id, 'active');
    expect(workload?.workloadId).not.toBe(first);
    expect(await history(id)).toContain('session.assigned');
    const launched = (await fleet.workloads()).find((one) => one.id === workload?.workloadId);
    expect(launched?.browser).toEqual({ viewport: null, locale: null, timezone: null, ...options });
    expect(await waiting(server)).toBe(first);
  },
);

test.each([
  ['has room for another', 8],
  ['is full', 3],
])(
  'a browser is launched for a request that no idle browser of a surplus can serve: the server %s',
  async (_, max) => {
    const before = await fleet.join({ limits: { minIdle: 3, maxIdle: 3, max } });
    await eventually(async () => (await idleOf(before)).length === 3, 'three browsers are idle');
    before.kill();
    const { id, machine } = before;
    const server = await fleet.join({ id, machine, limits: { minIdle: 1, maxIdle: 1, max } });
    expect(await idleOf(server)).toHaveLength(3);
    for (const options of [{ locale: 'fr-FR' }, { timezone: 'Europe/Rome' }, { headless: true }]) {
      const session = await fleet.waitForStatus(await fleet.create(options), 'active');
      expect(session.browser).toMatchObject(options);
    }
  },
);

test('a request that a server has no memory for goes to another server', async () => {
  const MIB = 1024 ** 2;
  let free = 4_096 * MIB;
  const limits = { minIdle: 2, maxIdle: 2, max: 8, browserBytes: 256 * MIB };
  const short = await fleet.join({ limits, memoryFreeBytes: () => free });
  await eventually(async () => (await idleOf(short)).length === 2, 'two browsers are idle');
  // The idle browsers give back less than another would take.
  free = 300 * MIB;
  await eventually(async () => {
    const [resized] = (await fleet.serverEvents(short.id, 'server.pool-resized')).slice(-1);
    return resized?.data.decision.limitedBy === 'memory';
  }, 'the server reports that it is short of memory');
  const asked = [await fleet.create({ locale: 'fr-FR' }), await fleet.create({ headless: true })];
  for (const id of asked)
    await eventually(
      async () => (await fleet.read(id)).assignment?.serverId === short.id,
      'the session is assigned',
    );
  const other = await fleet.join({ limits: ONE_IDLE });
  for (const id of asked)
    expect((await fleet.waitForStatus(id, 'active')).workload?.serverId).toBe(other.id);
});

/** A host on which the VNC port of the first browser is a port of the test. */
async function machineWith(port: number): Promise<SimulatedBrowsers> {
  const machine = await createSimulatedBrowsers({ launchMs: 5, failRate: 0 });
  onTestFinished(() => machine[Symbol.asyncDispose]());
  let isFirst = true;
  return {
    ...machine,
    launch: async (spec) => {
      const browser = await machine.launch(spec);
      if (!isFirst) return browser;
      isFirst = false;
      return { ...browser, vnc: { host: '127.0.0.1', port } };
    },
  };
}

test('a browser that cannot be resized is terminated, and its session gets another', async () => {
  const closedPort = 1;
  const server = await fleet.join({ limits: ONE_IDLE, machine: await machineWith(closedPort) });
  const broken = await waiting(server);
  const id = await fleet.create({ viewport });
  const { workload } = await fleet.waitForStatus(id, 'active');
  expect(workload?.workloadId).not.toBe(broken);
  expect(await screenOf(id)).toEqual([800, 600]);
  expect(await history(id)).toEqual(['session.requested', 'session.assigned', 'session.activated']);
  await eventually(
    async () => (await fleet.workloads()).every((one) => one.id !== broken),
    'the broken browser is gone',
  );
  expect(server.provisioner.leaks()).toEqual({ browsers: 0, sessions: 0 });
});

test('a browser that was being resized when its provisioner was killed never becomes idle again', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void silent.close());
  await once(silent, 'listening');
  const machine = await machineWith((silent.address() as AddressInfo).port);
  const first = await fleet.join({ limits: ONE_IDLE, machine });
  const half = await waiting(first);
  const dialled = once(silent, 'connection');
  await fleet.create({ viewport });
  await dialled;
  first.kill();

  const second = await fleet.join({ id: first.id, limits: ONE_IDLE, machine });
  expect(await waiting(second)).not.toBe(half);
  expect((await machine.list()).map(({ workloadId }) => workloadId)).not.toContain(half);
});
