import { expect, test } from 'vitest';
import { eventually } from '#test/support/service/service.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { withForeignItems, withForeignStates } from '#test/support/stores/foreign-states.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** A server beside processes that write another state version: no event has a usable state. */

useVirtualTime();

test('a server serves and ends sessions whose events carry another state version', async () => {
  await using fleet = await openFleet({ events: withForeignStates, items: withForeignItems });
  const { machine } = await fleet.join({ limits: { minIdle: 0, maxIdle: 0, max: 1 } });
  const id = await fleet.create({ locale: 'fr-FR' });
  const { workload } = await fleet.waitForStatus(id, 'active');
  expect((await machine.list()).map(({ workloadId }) => workloadId)).toEqual([
    workload?.workloadId,
  ]);
  await fleet.sendSessionCommand(id, { type: 'StopSession', reason: 'user', now: Date.now() });
  await fleet.waitForStatus(id, 'stopped');
  expect(await machine.list()).toEqual([]);
});

test('a server drains when the drain event carries another state version', async () => {
  await using fleet = await openFleet({ events: withForeignStates, items: withForeignItems });
  const { id } = await fleet.join();
  await fleet.sendServerCommand(id, { type: 'Drain' });
  const isDrained = async () => (await fleet.serverOf(id))?.status === 'drained';
  await eventually(isDrained, 'the server has drained');
});
