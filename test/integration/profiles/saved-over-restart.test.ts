import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SAVE_GIVEN_UP_MS } from '#src/kernel/domain/session/decide-profile.ts';
import { openFleet, type ServerOptions } from '#test/support/service/fleet.ts';
import { createSaving, profilesThatTake } from '#test/support/stores/saved-profiles.ts';
import { eventually } from '#test/support/service/service.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** Sessions that save their profiles, and a server that starts again meanwhile. */

useVirtualTime();

const SAVED_IN_MS = 1_000;
const openProfiles = profilesThatTake(SAVED_IN_MS);

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

/** A session whose profile a client has asked to save; its server has learned of it. */
async function openSaving(server: ServerOptions) {
  const first = await fleet.join({ ...server, openProfiles });
  const id = await createSaving(fleet.context);
  await fleet.waitForStatus(id, 'active');
  const { promise, resolve } = Promise.withResolvers<void>();
  const unwatch = fleet.sessionEvents.watch(id, ({ type }) => {
    if (type === 'session.profile-save-requested') resolve();
  });
  await fleet.sendSessionCommand(id, { type: 'SaveProfile', now: Date.now() });
  await promise;
  unwatch();
  return { first, id };
}
/** What has become of the saves that a client has asked for. */
async function outcomesOf(id: string): Promise<string[]> {
  const session = { kind: 'session', organizationId: 'acme', id } as const;
  const history = await Array.fromAsync(fleet.context.eventStore.history<'session'>(session));
  return history.flatMap(({ type, data }) => ('atEnd' in data && !data.atEnd ? [type] : []));
}

test('a save that a client has asked for is finished before its server leaves', async () => {
  const { first, id } = await openSaving({ onShutdown: 'leave' });
  await first[Symbol.asyncDispose]();
  expect(await outcomesOf(id)).toEqual(['session.profile-saved']);
  expect((await fleet.read(id)).status).toBe('active');
});

test('a save that a client has asked for is made by the next process of a server that was killed', async () => {
  const { first, id } = await openSaving({});
  first.kill();
  await fleet.join({ id: first.id, machine: first.machine, openProfiles });
  await eventually(async () => (await outcomesOf(id)).length > 0, 'the save has an outcome');
  await pause(2 * SAVED_IN_MS);
  expect(await outcomesOf(id)).toEqual(['session.profile-saved']);
});

test('a save that was given up before its server started again is not made', async () => {
  const { first, id } = await openSaving({});
  first.kill();
  await pause(SAVE_GIVEN_UP_MS);
  await fleet.join({ id: first.id, machine: first.machine, openProfiles });
  await pause(2 * SAVED_IN_MS);
  expect(await outcomesOf(id)).toEqual([]);
});
