import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { projectionId } from '#projections/projection.ts';
import { sessionView } from '#projections/session-view.ts';
import type { Views } from '#projections/store/views.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { decideWorkload } from '#src/kernel/domain/fleet/workload.ts';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import type { Browsers } from '#src/browsers/browsers.ts';
import { observe } from '#src/roles/provisioner/reconcile/observe.ts';
import { DEFAULTS } from '#src/roles/provisioner/pool/options.ts';
import { createPool, type WaitingRequest } from '#src/roles/provisioner/pool/pool.ts';
import { eventually } from '#test/support/service/service.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { lastOf } from '#test/support/stores/last-of.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** Reconciliation while work goes on: work under way is no difference. */

useVirtualTime();

let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

const NO_POOL = { minIdle: 0, maxIdle: 0, max: 4 };
const NO_LEAKS = { browsers: 0, sessions: 0 };

/** Lets calls through until it is closed; then they wait until it is opened. */
function createGate() {
  let opened: PromiseWithResolvers<void> | null = null;
  let waiting = 0;
  return {
    close: () => void (opened = Promise.withResolvers()),
    open() {
      opened?.resolve();
      opened = null;
    },
    async pass() {
      waiting += 1;
      await opened?.promise;
      waiting -= 1;
    },
    holds: (count: number) => eventually(() => waiting === count, `the gate holds ${count}`),
  };
}

/** A host whose launches, stops and lists can be held up and are counted. */
async function gatedMachine() {
  const machine = await createSimulatedBrowsers({ launchMs: 1, failRate: 0 });
  onTestFinished(() => machine[Symbol.asyncDispose]());
  const gates = { launch: createGate(), stop: createGate(), list: createGate() };
  const counted = { launches: 0, lists: 0 };
  const gated: typeof machine = {
    ...machine,
    async launch(spec) {
      counted.launches += 1;
      await gates.launch.pass();
      return machine.launch(spec);
    },
    async stop(workloadId) {
      await gates.stop.pass();
      await machine.stop(workloadId);
    },
    async list() {
      const found = await machine.list();
      counted.lists += 1;
      await gates.list.pass();
      return found;
    },
  };
  return { machine: gated, gates, counted };
}

test('a session that is activated and one that is stopped meanwhile are no differences', async () => {
  const { machine, gates, counted } = await gatedMachine();
  const readModel = createGate();
  const views = (all: Views): Views => ({
    ...all,
    async waitForCheckpoint(...args) {
      await readModel.pass();
      return all.waitForCheckpoint(...args);
    },
  });
  const server = await fleet.join({ machine, views, limits: NO_POOL });
  const ended = await fleet.create();
  await fleet.waitForStatus(ended, 'active');

  // The observation begins before either, reads both halfway, and ends after both are done.
  for (const gate of [readModel, gates.launch, gates.stop, gates.list]) gate.close();
  server.provisioner.reconcileSoon();
  await readModel.holds(2);
  await fleet.sendSessionCommand(ended, { type: 'StopSession', reason: 'user', now: Date.now() });
  const served = await fleet.create();
  await gates.stop.holds(1);
  await eventually(
    async () => (await fleet.read(served)).assignment !== null,
    'the session is assigned',
  );
  const sequence = await lastOf(fleet.context.eventStore, sessionView.subjects);
  expect(await fleet.views.waitForCheckpoint(projectionId(sessionView), sequence, 10_000)).toBe(
    true,
  );
  readModel.open();
  await gates.list.holds(1);
  gates.launch.open();
  gates.stop.open();
  const { workload } = await fleet.waitForStatus(served, 'active');
  await fleet.waitForStatus(ended, 'stopped');
  gates.list.open();

  const lists = counted.lists + 3;
  await eventually(() => {
    server.provisioner.reconcileSoon();
    return counted.lists >= lists;
  }, 'the server has been reconciled again');
  expect(counted.launches).toBe(2);
  expect(await fleet.serverEvents(server.id, 'server.reconciled')).toHaveLength(1);
  expect(server.provisioner.leaks()).toEqual(NO_LEAKS);
  expect(await fleet.read(served)).toMatchObject({ status: 'active', workload });
});

test('a difference that the next observation does not find is not corrected', async () => {
  const { machine, counted } = await gatedMachine();
  let isHidden = false;
  async function list() {
    const found = await machine.list();
    const seen = isHidden ? [] : found;
    isHidden = false;
    return seen;
  }
  const server = await fleet.join({ machine: { ...machine, list }, limits: NO_POOL });
  const id = await fleet.create();
  await fleet.waitForStatus(id, 'active');
  isHidden = true;
  const lists = counted.lists + 3;
  await eventually(() => {
    server.provisioner.reconcileSoon();
    return counted.lists >= lists;
  }, 'the server has been reconciled again');
  expect((await fleet.read(id)).status).toBe('active');
  expect(server.provisioner.leaks()).toEqual(NO_LEAKS);
  expect(await fleet.serverEvents(server.id, 'server.reconciled')).toHaveLength(1);
});

test('an observation contains all that the pool handled at any of its moments', async () => {
  const waiting = { identity: { organizationId: 'acme', id: 'ses_1' } } as WaitingRequest;
  const pool = createPool({
    server: { id: 'srv_1', ip: '10.0.0.1' },
    limits: { minIdle: 0 },
    browsers: { list: leave } as unknown as Browsers,
  } as Parameters<typeof createPool>[0]);
  const eventStore = { lastSequence: async () => 0 } as unknown as CommandContext['eventStore'];
  /** The read model is read while the work is under way, the host when it is done. */
  const views = {
    async waitForCheckpoint() {
      pool.waiting.push(waiting);
      pool.roster.move(pool.roster.add('wl_1', DEFAULTS, null), 'ending');
      return true;
    },
    page: async () => ({ items: '', total: 0, checkpoint: 0 }),
  } as unknown as Views;
  async function leave() {
    pool.waiting.length = 0;
    pool.roster.remove('wl_1');
    return [];
  }
  const { inCharge, ending, taken } = await observe({
    context: createCommandContext(eventStore, Date.now),
    views,
    pool,
  });
  expect([...inCharge, ...ending, ...taken]).toEqual(['wl_1', 'wl_1', 'ses_1']);
});

test('an idle browser that another server recorded as ended is replaced', async () => {
  const {
    id: serverId,
    machine,
    provisioner,
  } = await fleet.join({ limits: { maxIdle: 1, max: 1 } });
  await provisioner.warm();
  const [idle] = (await machine.list()).map(({ workloadId }) => workloadId);
  if (idle === undefined) throw new Error('no idle browser');
  // As a timekeeper does that is killed before it declares the server lost.
  const ended = { type: 'ReportTerminated', reason: 'server_lost', exitCode: null } as const;
  await handleCommand<'workload'>(
    fleet.context,
    { kind: 'workload', id: idle },
    (one) => decideWorkload(ended, one),
    newMetadata('test'),
  );
  provisioner.reconcileSoon();
  const isReplaced = async () => {
    const [now] = (await machine.list()).map(({ workloadId }) => workloadId);
    return now !== undefined && now !== idle;
  };
  await eventually(isReplaced, 'the browser is replaced');
  expect((await fleet.serverOf(serverId))?.status).toBe('live');
});
