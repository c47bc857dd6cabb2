import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import {
  createSimulatedBrowsers,
  type SimulatedBrowsers,
} from '#src/provisioner/browsers/simulated/simulated-browsers.ts';
import { dialRfb } from '#test/support/clients/rfb-client.ts';
import { eventually } from '#test/support/service/service.ts';
import { openFleet, type FleetServer } from '#test/support/service/fleet.ts';

/** What a session asks of its browser, and which browser it gets. */

let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

const ONE_WAITS = { minIdle: 1, maxIdle: 1, max: 4 };
const viewport = { width: 800, height: 600 };

async function idleOf(server: FleetServer): Promise<string[]> {
  const own = (await fleet.workloads()).filter(({ serverId }) => serverId === server.id);
  return own.filter(({ status }) => status === 'idle').map(({ id }) => id);
}

async function waiting(server: FleetServer, but: string[] = []): Promise<string> {
  const next = async () => (await idleOf(server)).find((id) => !but.includes(id)) ?? null;
  return eventually(next, 'a browser waits');
}

/** The size of the screen of a session's browser. */
async function screenOf(id: string): Promise<[number, number]> {
  const { workload } = await fleet.read(id);
  if (workload === null) throw new Error(`${id} has no browser`);
  using viewer = await dialRfb(workload.vnc, workload.workloadId.slice(-8));
  return [viewer.width, viewer.height];
}

/** Types of what the log has of a session. */
async function history(id: string): Promise<string[]> {
  const types: string[] = [];
  const session = { kind: 'session', organizationId: 'acme', id } as const;
  for await (const { type } of fleet.desk.log.history<'session'>(session)) types.push(type);
  return types;
}

test('a browser that waits takes on the viewport, and the next that waits is as any other', async () => {
  const server = await fleet.join({ limits: ONE_WAITS });
  const first = await waiting(server);
  const id = await fleet.create({ viewport });
  expect((await fleet.becomes(id, 'active')).workload?.workloadId).toBe(first);
  expect(await history(id)).toEqual(['session.requested', 'session.activated']);
  expect(await screenOf(id)).toEqual([800, 600]);

  const second = await waiting(server, [first]);
  const plain = await fleet.create();
  expect((await fleet.becomes(plain, 'active')).workload?.workloadId).toBe(second);
  expect(await screenOf(plain)).toEqual([1280, 800]);
});

test.each([{ locale: 'fr-FR' }, { timezone: 'Europe/Rome', viewport }, { headless: true }])(
  'a browser that cannot become %o goes on waiting',
  async (wish) => {
    const server = await fleet.join({ limits: ONE_WAITS });
    const first = await waiting(server);
    const id = await fleet.create(wish);
    const { workload } = await fleet.becomes(id, 'active');
    expect(workload?.workloadId).not.toBe(first);
    expect(await history(id)).toContain('session.assigned');
    const launched = (await fleet.workloads()).find((one) => one.id === workload?.workloadId);
    expect(launched?.browser).toEqual({ viewport: null, locale: null, timezone: null, ...wish });
    expect(await waiting(server)).toBe(first);
  },
);

test.each([
  ['has room for another', 8],
  ['is full', 3],
])(
  'a browser is launched for a request that none of too many idle ones can become: the server %s',
  async (_, max) => {
    const before = await fleet.join({ limits: { minIdle: 3, maxIdle: 3, max } });
    await eventually(async () => (await idleOf(before)).length === 3, 'three browsers are idle');
    before.kill();
    const { id, machine } = before;
    const server = await fleet.join({ id, machine, limits: { minIdle: 1, maxIdle: 1, max } });
    expect(await idleOf(server)).toHaveLength(3);
    for (const wish of [{ locale: 'fr-FR' }, { timezone: 'Europe/Rome' }, { headless: true }]) {
      const session = await fleet.becomes(await fleet.create(wish), 'active');
      expect(session.browser).toMatchObject(wish);
    }
  },
);

test('a request for which a server has no memory left is another server’s', async () => {
  const MIB = 1024 ** 2;
  let free = 4_096 * MIB;
  const limits = { minIdle: 2, maxIdle: 2, max: 8, browserBytes: 256 * MIB };
  const short = await fleet.join({ limits, memoryFreeBytes: () => free });
  await eventually(async () => (await idleOf(short)).length === 2, 'two browsers are idle');
  // The idle browsers give back less than another would take.
  free = 300 * MIB;
  await eventually(async () => {
    const [told] = (await fleet.heard(short.id, 'server.pool-resized')).slice(-1);
    return told?.data.decision.limitedBy === 'memory';
  }, 'it is known to be short of memory');
  const asked = [await fleet.create({ locale: 'fr-FR' }), await fleet.create({ headless: true })];
  for (const id of asked)
    await eventually(async () => (await fleet.read(id)).assignment?.serverId === short.id, 'taken');
  const other = await fleet.join({ limits: ONE_WAITS });
  for (const id of asked)
    expect((await fleet.becomes(id, 'active')).workload?.serverId).toBe(other.id);
});

/** A machine on which the first browser's screen is at a port of the test's own. */
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

test('a browser that cannot be given its size is ended, and its session gets another', async () => {
  const nobody = 1;
  const server = await fleet.join({ limits: ONE_WAITS, machine: await machineWith(nobody) });
  const broken = await waiting(server);
  const id = await fleet.create({ viewport });
  const { workload } = await fleet.becomes(id, 'active');
  expect(workload?.workloadId).not.toBe(broken);
  expect(await screenOf(id)).toEqual([800, 600]);
  expect(await history(id)).toEqual(['session.requested', 'session.assigned', 'session.activated']);
  await eventually(
    async () => (await fleet.workloads()).every((one) => one.id !== broken),
    'the broken one is gone',
  );
  expect(server.provisioner.leaks()).toEqual({ browsers: 0, sessions: 0 });
});

test('a browser that is being given its size when its provisioner is killed never waits again', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void silent.close());
  await once(silent, 'listening');
  const machine = await machineWith((silent.address() as AddressInfo).port);
  const first = await fleet.join({ limits: ONE_WAITS, machine });
  const half = await waiting(first);
  const dialled = once(silent, 'connection');
  await fleet.create({ viewport });
  await dialled;
  first.kill();

  const second = await fleet.join({ id: first.id, limits: ONE_WAITS, machine });
  expect(await waiting(second)).not.toBe(half);
  expect((await machine.list()).map(({ workloadId }) => workloadId)).not.toContain(half);
});
