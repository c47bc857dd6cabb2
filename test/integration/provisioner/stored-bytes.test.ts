import { expect, test } from 'vitest';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import type { Browsers } from '#src/browsers/browsers.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** What a server does with browsers that store more and more while their sessions live. */

useVirtualTime();

async function start() {
  const machine = await createSimulatedBrowsers({ launchMs: 5, failRate: 0 });
  const stored = new Map<string, number | Error>();
  const storing: Browsers = Object.assign(Object.create(machine) as typeof machine, machine, {
    async storedBytes(workloadId: string) {
      const told = stored.get(workloadId) ?? 100;
      if (told instanceof Error) throw told;
      return told;
    },
  });
  const fleet = await openFleet();
  const server = await fleet.join({ browsers: storing, storedBytesMax: 1_000 });
  const workloadOf = async (id: string) => (await fleet.read(id)).workload?.workloadId ?? '';
  return { fleet, server, stored, machine: storing, workloadOf };
}
const seconds = (count: number) => new Promise((resolve) => setTimeout(resolve, count * 1_000));

test('a browser that stores more than it may is ended, and its session says why', async () => {
  const { fleet, stored, machine, workloadOf } = await start();
  await using _ = fleet;
  const [one, other] = [await fleet.create(), await fleet.create()];
  for (const id of [one, other]) await fleet.waitForStatus(id, 'active');
  const workloadId = await workloadOf(one);
  stored.set(workloadId, 1_000);
  await seconds(30);
  expect((await fleet.read(one)).status).toBe('active');
  stored.set(workloadId, 1_001);
  const { endedReason } = await fleet.waitForStatus(one, 'failed');
  expect(endedReason).toBe('out_of_memory');
  expect(await fleet.detailOf(one)).toBe(
    'the browser stored 1001 bytes in its profile, more than 1000',
  );
  expect((await machine.list()).map((browser) => browser.workloadId)).not.toContain(workloadId);
  expect((await fleet.read(other)).status).toBe('active');
});

test('one of which it is not known goes on', async () => {
  const { fleet, stored, workloadOf } = await start();
  await using _ = fleet;
  const id = await fleet.create();
  await fleet.waitForStatus(id, 'active');
  stored.set(await workloadOf(id), new Error('no answer'));
  await seconds(60);
  expect((await fleet.read(id)).status).toBe('active');
});
