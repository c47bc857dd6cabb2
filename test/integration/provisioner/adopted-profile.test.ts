import { afterEach, beforeEach, expect, test } from 'vitest';
import { openFleet } from '#test/support/service/fleet.ts';
import { createSaving } from '#test/support/service/fleet-profiles.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** Sessions that save their profiles, and a server that starts again meanwhile. */

useVirtualTime();

let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

const stop = () => ({ type: 'StopSession', reason: 'user', now: Date.now() }) as const;

test('a session that is stopped while its server starts again saves its profile', async () => {
  const first = await fleet.join();
  const id = await createSaving(fleet.context);
  await fleet.waitForStatus(id, 'active');
  first.kill();
  await fleet.sendSessionCommand(id, stop());

  const second = await fleet.join({ id: first.id, machine: first.machine });
  const { profile, workload } = await fleet.waitForStatus(id, 'stopped');
  expect(profile).toMatchObject({ saved: 1, isDone: true });
  const running = (await second.machine.list()).map(({ workloadId }) => workloadId);
  expect(running).not.toContain(workload?.workloadId);
  expect(second.provisioner.leaks()).toEqual({ browsers: 0, sessions: 0 });
});

test('a session that is stopped right before its server leaves saves its profile first', async () => {
  const first = await fleet.join({ onShutdown: 'leave' });
  const id = await createSaving(fleet.context);
  await fleet.waitForStatus(id, 'active');
  const ended = Promise.withResolvers<void>();
  // The server has learned of it in the same moment.
  const unwatch = fleet.sessionEvents.watch(id, ({ state }) => {
    if (state.status === 'stopping') ended.resolve(first[Symbol.asyncDispose]());
  });
  await fleet.sendSessionCommand(id, stop());
  await ended.promise;
  unwatch();
  expect(await fleet.read(id)).toMatchObject({ status: 'stopped', profile: { saved: 1 } });
});
