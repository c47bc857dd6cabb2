import { afterEach, beforeEach, expect, test } from 'vitest';
import { decidePool } from '#src/kernel/domain/fleet/pool-policy.ts';
import { burst } from '#test/support/load/burst.ts';
import { openFleet, type FleetServer } from '#test/support/service/fleet.ts';
import { eventually } from '#test/support/service/service.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

const MINUTE = 60_000;
/** Set by hand: the bursts are minutes apart. */
const clock = { now: 0 };
let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeEach(async () => {
  clock.now = Date.UTC(2026, 0, 5, 9);
  fleet = await openFleet({ now: () => clock.now });
});
afterEach(() => fleet[Symbol.asyncDispose]());

/** As with the default configuration on two cores. */
const limits = { minIdle: 1, maxIdle: 4, max: 4, launchesAtOnce: 2 };

/** The ids of the idle browsers, once there are that many, and nothing is launched or ended. */
function idleOf(server: FleetServer, count: number): Promise<string[]> {
  return eventually(async () => {
    const own = (await fleet.workloads()).filter(({ serverId }) => serverId === server.id);
    const isSettled = own.every(({ status }) => status === 'idle' || status === 'busy');
    const idle = own.filter(({ status }) => status === 'idle').map(({ id }) => id);
    return isSettled && idle.length === count && idle;
  }, `${count} browsers are idle`);
}

async function targetOf(server: FleetServer, target: number): Promise<void> {
  const isSet = async () => (await fleet.serverOf(server.id))?.pool?.target === target;
  await eventually(isSet, `the idle target is ${target}`);
}

test('bursts of four find idle browsers from the third on, also after a restart', async () => {
  const server = await fleet.join({ limits });
  await idleOf(server, 1);
  await burst(fleet, clock);
  clock.now += 3 * MINUTE;
  await idleOf(server, 1);
  await burst(fleet, clock);
  // Not before the third burst is due.
  await idleOf(server, 1);
  clock.now += 3 * MINUTE;
  for (const _ of [3, 4]) {
    const idle = await idleOf(server, 4);
    expect((await burst(fleet, clock)).toSorted()).toEqual(idle.toSorted());
    await targetOf(server, 1);
    clock.now += 3 * MINUTE;
    await targetOf(server, 4);
  }
  server.kill();
  const again = await fleet.join({ id: server.id, machine: server.machine, limits });
  await targetOf(again, 4);
  const idle = await idleOf(again, 4);
  expect((await burst(fleet, clock)).toSorted()).toEqual(idle.toSorted());

  const resized = await fleet.serverEvents(server.id, 'server.pool-resized');
  expect(resized.length).toBeGreaterThan(6);
  for (const { data } of resized)
    expect(decidePool(data.inputs, data.policy)).toEqual(data.decision);
});
