import { afterEach, beforeEach, expect, test } from 'vitest';
import { openCdp } from '#test/support/browsers/browsers.fixture.ts';
import { eventually } from '#test/support/service/service.ts';
import { openFleet } from '#test/support/service/fleet.ts';

/** What the log says of browsers that their users closed. */

let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

async function serve() {
  const server = await fleet.join();
  const id = await fleet.create();
  const { workload } = await fleet.becomes(id, 'active');
  if (workload === null) throw new Error('active without a browser');
  return { server, id, workload };
}

/** The last words of the log on a browser. */
async function endOf(workloadId: string) {
  const workload = { kind: 'workload', id: workloadId } as const;
  return eventually(async () => {
    const last = await fleet.desk.log.last<'workload'>(workload);
    return last?.type === 'workload.terminated' && last.data;
  }, `${workloadId} is terminated`);
}

async function typesOf(id: string): Promise<string[]> {
  const types: string[] = [];
  const session = { kind: 'session', organizationId: 'acme', id } as const;
  for await (const { type } of fleet.desk.log.history<'session'>(session)) types.push(type);
  return types;
}

test('a browser that its user closes stops its session, and another waits in its place', async () => {
  const { server, id, workload } = await serve();
  using client = await openCdp(workload.cdp);
  await client.send('Browser.close').catch(() => undefined);
  expect(await fleet.becomes(id, 'stopped')).toMatchObject({
    endedReason: 'browser_closed',
    creditsUsed: 1,
  });
  expect((await typesOf(id)).slice(-2)).toEqual(['session.stop-requested', 'session.stopped']);
  expect(await endOf(workload.workloadId)).toEqual({ reason: 'closed', exitCode: 0 });
  const next = await fleet.create();
  await fleet.becomes(next, 'active');
  expect(server.provisioner.leaks()).toEqual({ browsers: 0, sessions: 0 });
});

test('a session that is stopping keeps its reason, though its browser is closed first', async () => {
  const { server, id, workload } = await serve();
  await fleet.tell(id, { type: 'StopSession', reason: 'user', now: Date.now() });
  server.machine.close(workload.workloadId);
  expect(await fleet.becomes(id, 'stopped')).toMatchObject({ endedReason: 'user' });
});

test('a stop that comes while a close is being told ends the session once', async () => {
  const { server, id, workload } = await serve();
  server.machine.close(workload.workloadId);
  await fleet.tell(id, { type: 'StopSession', reason: 'user', now: Date.now() });
  const { endedReason } = await fleet.becomes(id, 'stopped');
  expect(['user', 'browser_closed']).toContain(endedReason);
  await endOf(workload.workloadId);
  expect((await typesOf(id)).slice(-2)).toEqual(['session.stop-requested', 'session.stopped']);
});

test('a browser that was closed while its provisioner was away stopped its session then', async () => {
  const { server, id, workload } = await serve();
  server.kill();
  const { workloadId } = workload;
  await server.machine.stop(workloadId);
  const closedAt = Date.now();
  // A machine that keeps what it knows of the end until it is told to remove that.
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
