import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MalformedEvent } from '#events/codec.ts';
import { Unavailable, WrittenByNewer } from '#src/kernel/errors.ts';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import { LaunchFailed } from '#src/browsers/browsers.ts';
import { eventually } from '#test/support/service/service.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

const SPEC = { vncPassword: 'secret12', screen: { width: 800, height: 600 } };
const ONE = { minIdle: 0, maxIdle: 0, max: 1 };
const malformed = () => new MalformedEvent('data: no such field');

describe('a difference that cannot be corrected', () => {
  test('a stray browser that cannot be stopped does not prevent a start: it counts as a leak', async () => {
    const first = await fleet.join({ limits: ONE });
    first.kill();
    const { machine } = first;
    for (const workloadId of ['wl_stuck', 'wl_stray'])
      await machine.launch({ workloadId, ...SPEC });
    let isStuck = true;
    async function stop(workloadId: string): Promise<void> {
      if (workloadId === 'wl_stuck' && isStuck) throw new Error('device or resource busy');
      await machine.stop(workloadId);
    }

    const second = await fleet.join({ id: first.id, machine: { ...machine, stop } });
    expect(second.provisioner.leaks()).toEqual({ browsers: 1, sessions: 0 });
    const [event] = (await fleet.serverEvents(first.id, 'server.reconciled')).slice(-1);
    expect(event?.data).toMatchObject({ stopped: 1, leaks: { browsers: 1, sessions: 0 } });
    const running = (await machine.list()).map(({ workloadId }) => workloadId);
    expect(running).toContain('wl_stuck');
    expect(running).not.toContain('wl_stray');
    await fleet.waitForStatus(await fleet.create(), 'active');

    // While the server runs the other differences are still corrected.
    await machine.launch({ workloadId: 'wl_later', ...SPEC });
    second.provisioner.reconcileSoon();
    await isEnded('wl_later');
    isStuck = false;
    second.provisioner.reconcileSoon();
    await isEnded('wl_stuck');
    const isClean = () => second.provisioner.leaks().browsers === 0;
    await eventually(isClean, 'no leak is left');

    async function isEnded(id: string): Promise<void> {
      const isGone = async () => (await machine.list()).every((one) => one.workloadId !== id);
      await eventually(isGone, `${id} has ended`);
    }
  });

  test('a browser that cannot be removed is not told as ended, by this process nor by the next', async () => {
    const machine = await createSimulatedBrowsers({ launchMs: 1, failRate: 0 });
    let isStuck = true;
    let tried = 0;
    async function stop(workloadId: string): Promise<void> {
      tried += 1;
      if (isStuck) throw new Error('device or resource busy');
      await machine.stop(workloadId);
    }
    const stuck = { ...machine, stop };
    const first = await fleet.join({ limits: ONE, machine: stuck });
    const id = await fleet.create();
    await fleet.waitForStatus(id, 'active');
    await fleet.sendSessionCommand(id, { type: 'StopSession', reason: 'user', now: Date.now() });
    await eventually(() => tried >= 3, 'its stop has been tried again');
    const isTold = async () => {
      const [workload] = await fleet.workloads();
      return [(await fleet.read(id)).status, workload?.status];
    };
    expect(await isTold()).toEqual(['stopping', 'terminating']);
    first.kill();

    tried = 0;
    const second = await fleet.join({ id: first.id, limits: ONE, machine: stuck });
    await eventually(() => tried >= 3, 'its stop has been tried again by the next process');
    expect(await isTold()).toEqual(['stopping', 'terminating']);
    isStuck = false;
    await fleet.waitForStatus(id, 'stopped');
    await eventually(async () => (await isTold())[1] !== 'terminating', 'the workload has ended');
    await second[Symbol.asyncDispose]();
    expect((await fleet.serverOf(first.id))?.status).toBe('left');
    await machine[Symbol.asyncDispose]();
  });

  test('a browser that cannot be removed holds up neither other requests nor the shutdown', async () => {
    const machine = await createSimulatedBrowsers({ launchMs: 1, failRate: 0 });
    const stuck = new Set<string>();
    async function stop(workloadId: string): Promise<void> {
      if (stuck.has(workloadId)) throw new Error('device or resource busy');
      await machine.stop(workloadId);
    }
    const server = await fleet.join({
      limits: { minIdle: 1, maxIdle: 1, max: 2 },
      machine: { ...machine, stop },
    });
    const first = await fleet.create();
    const { workload } = await fleet.waitForStatus(first, 'active');
    stuck.add(workload?.workloadId ?? '');
    const user = { type: 'StopSession', reason: 'user', now: Date.now() } as const;
    await fleet.sendSessionCommand(first, user);
    await eventually(async () => {
      const phases = (await fleet.workloads()).map(({ status }) => status);
      return phases.toSorted().join() === 'idle,terminating';
    }, 'one browser is idle beside the one that cannot be removed');

    // The server is full, and its idle browser cannot serve this request.
    const special = await fleet.create({ timezone: 'Europe/Zurich' });
    await fleet.waitForStatus(special, 'active');

    const leaving = server[Symbol.asyncDispose]().then(() => 'left in time');
    const late = new Promise((resolve) => setTimeout(resolve, 8_000, 'too late').unref());
    // A process that has not ended 9.5 s after SIGTERM is ended with its other sessions unsettled.
    expect(await Promise.race([leaving, late])).toBe('left in time');
    expect((await fleet.read(special)).status).toBe('stopped');
    // The end of the first session is not recorded, so the server does not report that it leaves.
    expect((await fleet.serverOf(server.id))?.status).toBe('live');
    await machine[Symbol.asyncDispose]();
  });

  test('an unreadable session does not prevent that another one fails', async () => {
    const first = await fleet.join({ limits: { minIdle: 0, maxIdle: 0 } });
    const ids = [await fleet.create(), await fleet.create()];
    for (const id of ids) await fleet.waitForStatus(id, 'active');
    first.kill();
    for (const { workloadId } of await first.machine.list()) await first.machine.stop(workloadId);
    const [poisoned = '', lost = ''] = ids;
    fleet.unreadable.set(poisoned, malformed);

    const second = await fleet.join({ id: first.id, machine: first.machine });
    expect(second.provisioner.leaks()).toEqual({ browsers: 0, sessions: 1 });
    expect(await fleet.read(lost)).toMatchObject({ status: 'failed', endedReason: 'server_lost' });
    const [event] = (await fleet.serverEvents(first.id, 'server.reconciled')).slice(-1);
    expect(event?.data).toMatchObject({ failed: 1, leaks: { browsers: 0, sessions: 1 } });
  });

  test('an unavailable event store is waited for: the differences of that time are no leaks', async () => {
    const first = await fleet.join({ limits: ONE, launchMs: 60_000 });
    const taken = await fleet.create();
    await eventually(
      async () => (await fleet.read(taken)).assignment !== null,
      'the session is assigned',
    );
    first.kill();
    let awayFor = 4;
    fleet.unreadable.set(taken, () => (awayFor-- > 0 ? new Unavailable('event-log') : null));

    const second = await fleet.join({ id: first.id, machine: first.machine });
    expect(second.provisioner.leaks()).toEqual({ browsers: 0, sessions: 0 });
  });
});

test('a browser that crashes right after its launch is assigned to no session', async () => {
  const machine = await createSimulatedBrowsers({ launchMs: 1, failRate: 0 });
  const asked = Promise.withResolvers<string>();
  let dead: string | null = null;
  async function launch(spec: Parameters<typeof machine.launch>[0]) {
    const browser = await machine.launch(spec);
    dead ??= spec.workloadId;
    // After the launch has resolved and before the browser is idle.
    if (dead === spec.workloadId)
      setImmediate(() => {
        machine.crash(spec.workloadId);
        asked.resolve(fleet.create());
      });
    return browser;
  }
  await fleet.join({ machine: { ...machine, launch }, limits: { max: 1 } });
  const { workload } = await fleet.waitForStatus(await asked.promise, 'active');
  expect(workload?.workloadId).not.toBe(dead);
  const running = (await machine.list()).map(({ workloadId }) => workloadId);
  expect(running).toEqual([workload?.workloadId]);
  await machine[Symbol.asyncDispose]();
});

describe('a session whose events have become unreadable', () => {
  test('keeps no place in the pool when its launches fail', async () => {
    const machine = await createSimulatedBrowsers({ launchMs: 1, failRate: 0 });
    const broken = Promise.withResolvers<void>();
    let failures = 0;
    async function launch(spec: Parameters<typeof machine.launch>[0]) {
      if (spec.locale !== 'fr-FR') return machine.launch(spec);
      await broken.promise;
      failures += 1;
      throw new LaunchFailed('no such locale', '');
    }
    await fleet.join({ machine: { ...machine, launch }, limits: ONE });
    const id = await fleet.create({ locale: 'fr-FR' });
    await eventually(
      async () => (await fleet.read(id)).assignment !== null,
      'the session is assigned',
    );
    fleet.unreadable.set(id, malformed);
    broken.resolve();
    await eventually(() => failures === 3, 'its launches have failed');
    await fleet.waitForStatus(await fleet.create(), 'active');
    await machine[Symbol.asyncDispose]();
  });

  test.each(['crashes', 'is to be stopped'])(
    'keeps no place in the pool when its browser %s',
    async (how) => {
      const { machine, provisioner } = await fleet.join({ limits: ONE });
      const id = await fleet.create();
      const { workload } = await fleet.waitForStatus(id, 'active');
      fleet.unreadable.set(id, malformed);
      if (how === 'crashes') machine.crash(workload?.workloadId ?? '');
      else
        await fleet.sendSessionCommand(id, {
          type: 'StopSession',
          reason: 'user',
          now: Date.now(),
        });
      await fleet.waitForStatus(await fleet.create(), 'active');
      // It is still counted.
      provisioner.reconcileSoon();
      await eventually(() => provisioner.leaks().sessions === 1, 'it is counted as a leak');
    },
  );
});

describe('a waiting session that only a newer version can read', () => {
  test.each([0, 1])(
    'keeps no browser from the others, although it is its turn (%i idle)',
    async (idle) => {
      await fleet.join({ limits: { minIdle: idle, maxIdle: idle, max: 1 } });
      const stop = { type: 'StopSession', reason: 'user', now: Date.now() } as const;
      const first = await fleet.create();
      await fleet.waitForStatus(first, 'active');
      const newer = await fleet.create({}, 'beta');
      fleet.unreadable.set(newer, () => new WrittenByNewer(new Error('an unknown event')));
      const second = await fleet.create();
      await fleet.sendSessionCommand(first, stop);
      await fleet.waitForStatus(second, 'active');
      await fleet.sendSessionCommand(second, stop);
      fleet.unreadable.delete(newer);
      await fleet.waitForStatus(newer, 'active');
    },
  );
});
