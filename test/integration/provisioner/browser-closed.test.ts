import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '#test/support/service/service.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** The recorded events of browsers that their users closed. */

useVirtualTime();

let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

async function startSession() {
  const server = await fleet.join();
  const id = await fleet.create();
  const { workload } = await fleet.waitForStatus(id, 'active');
  if (workload === null) throw new Error('active without a browser');
  return { server, id, workload };
}

/** The data of the workload's last event. */
async function endOf(workloadId: string) {
  const workload = { kind: 'workload', id: workloadId } as const;
  return eventually(async () => {
    const last = await fleet.context.eventStore.readLast<'workload'>(workload);
    return last?.type === 'workload.terminated' && last.data;
  }, `${workloadId} is terminated`);
}

async function typesOf(id: string): Promise<string[]> {
  const types: string[] = [];
  const session = { kind: 'session', organizationId: 'acme', id } as const;
  for await (const { type } of fleet.context.eventStore.history<'session'>(session))
    types.push(type);
  return types;
}

test('a browser that its user closes stops its session, and another becomes idle in its place', async () => {
  const { server, id, workload } = await startSession();
  server.machine.closeByUser(workload.workloadId);
  expect(await fleet.waitForStatus(id, 'stopped')).toMatchObject({
    endedReason: 'browser_closed',
    creditsUsed: 1,
  });
  expect((await typesOf(id)).slice(-2)).toEqual(['session.stop-requested', 'session.stopped']);
  expect(await endOf(workload.workloadId)).toEqual({ reason: 'closed', exitCode: 0 });
  const next = await fleet.create();
  await fleet.waitForStatus(next, 'active');
  expect(server.provisioner.leaks()).toEqual({ browsers: 0, sessions: 0 });
});

test('a session that is stopping keeps its reason, though its browser is closed first', async () => {
  const { server, id, workload } = await startSession();
  await fleet.sendSessionCommand(id, { type: 'StopSession', reason: 'user', now: Date.now() });
  server.machine.closeByUser(workload.workloadId);
  expect(await fleet.waitForStatus(id, 'stopped')).toMatchObject({ endedReason: 'user' });
});

test('a stop during the report of a close ends the session once', async () => {
  const { server, id, workload } = await startSession();
  server.machine.closeByUser(workload.workloadId);
  await fleet.sendSessionCommand(id, { type: 'StopSession', reason: 'user', now: Date.now() });
  const { endedReason } = await fleet.waitForStatus(id, 'stopped');
  expect(['user', 'browser_closed']).toContain(endedReason);
  await endOf(workload.workloadId);
  expect((await typesOf(id)).slice(-2)).toEqual(['session.stop-requested', 'session.stopped']);
});

test('a browser that was closed while its provisioner was away stops its session as of the close', async () => {
  const { server, id, workload } = await startSession();
  server.kill();
  const { workloadId } = workload;
  await server.machine.stop(workloadId);
  const closedAt = Date.now();
  // A host that keeps the closed browser until it is stopped.
  let isThere = true;
  const machine = {
    ...server.machine,
    list: async () => [
      ...(await server.machine.list()),
      ...(isThere ? [{ workloadId, sessionId: id, adoptable: null, closedAt }] : []),
    ],
    stop: async (stopped: string) => {
      if (stopped === workloadId) isThere = false;
      await server.machine.stop(stopped);
    },
  };
  await fleet.join({ id: server.id, machine });
  expect(await fleet.read(id)).toMatchObject({
    status: 'stopped',
    endedReason: 'browser_closed',
    stopRequestedAt: new Date(closedAt).toISOString(),
  });
  expect(await endOf(workloadId)).toEqual({ reason: 'closed', exitCode: 0 });
  expect(isThere).toBe(false);
});
