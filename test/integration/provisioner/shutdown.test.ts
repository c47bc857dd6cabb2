import { expect, onTestFinished, test } from 'vitest';
import { createSimulatedBrowsers } from '#src/provisioner/browsers/simulated/simulated-browsers.ts';
import { openFleet } from '#test/support/service/fleet.ts';

/** A server that leaves while a browser is being ended. */

test('a session whose browser is being ended has stopped before its server leaves', async () => {
  await using fleet = await openFleet();
  const machine = await createSimulatedBrowsers({ launchMs: 1, failRate: 0 });
  onTestFinished(() => machine[Symbol.asyncDispose]());
  const [asked, allowed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  async function stop(workloadId: string): Promise<void> {
    asked.resolve();
    await allowed.promise;
    await machine.stop(workloadId);
  }
  const server = await fleet.join({
    machine: { ...machine, stop },
    limits: { minIdle: 0, maxIdle: 0 },
  });
  const id = await fleet.create();
  await fleet.waitForStatus(id, 'active');
  await fleet.sendSessionCommand(id, { type: 'StopSession', reason: 'user', now: Date.now() });
  await asked.promise;

  const leaving = server[Symbol.asyncDispose]();
  // Nothing else is under way: a server that did not wait would have left within this time.
  await new Promise((resolve) => void setTimeout(resolve, 200));
  expect((await fleet.serverOf(server.id))?.status).toBe('live');
  allowed.resolve();
  await leaving;
  expect((await fleet.read(id)).status).toBe('stopped');
  expect((await fleet.serverOf(server.id))?.status).toBe('left');
});
