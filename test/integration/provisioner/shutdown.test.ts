import { expect, onTestFinished, test } from 'vitest';
import { pino } from 'pino';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import { filesPart } from '#src/features/files/files-part.ts';
import { createSessionFiles } from '#src/features/files/session-files.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import type { EventListener, ObservedBrowserConnection } from '#src/browsers/observer/part.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { eventually } from '#test/support/service/service.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** A server that leaves while something is under way. */

useVirtualTime();

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

test('a browser that is being launched has ended in the log before its server leaves', async () => {
  await using fleet = await openFleet();
  const machine = await createSimulatedBrowsers({ launchMs: 3_600_000, failRate: 0 });
  const server = await fleet.join({ machine, limits: { minIdle: 1, maxIdle: 1 } });
  await eventually(async () => (await fleet.workloads()).length === 1, 'a launch is recorded');
  await server[Symbol.asyncDispose]();
  expect((await fleet.serverOf(server.id))?.status).toBe('left');
  await eventually(async () => (await fleet.workloads()).length === 0, 'its end is recorded');
});

test('a request that waits for its launch goes back to the queue before its server leaves', async () => {
  await using fleet = await openFleet();
  const slow = await createSimulatedBrowsers({ launchMs: 3_600_000, failRate: 0 });
  const server = await fleet.join({ machine: slow, limits: { minIdle: 0, maxIdle: 0 } });
  const id = await fleet.create();
  const isAssigned = async () => (await fleet.read(id)).assignment?.serverId === server.id;
  await eventually(isAssigned, 'the server has accepted the request');
  await server[Symbol.asyncDispose]();
  expect(await fleet.read(id)).toMatchObject({ assignment: null, status: 'queued' });

  const other = await fleet.join({ limits: { minIdle: 0, maxIdle: 0 } });
  onTestFinished(() => other[Symbol.asyncDispose]());
  await fleet.waitForStatus(id, 'active');
});

test('a download that is under way is recorded before its server leaves the browser', async () => {
  await using fleet = await openFleet();
  const machine = await createSimulatedBrowsers({ launchMs: 1, failRate: 0 });
  onTestFinished(() => machine[Symbol.asyncDispose]());
  const { eventStore } = fleet.context;
  const files = createSessionFiles({
    ...{ eventStore, objects: createMemoryObjectStore(), folders: machine.folders },
    ...{ now: Date.now, log: pino({ level: 'silent' }) },
    limits: { fileBytesMax: 100, sessionBytesMax: 100 },
  });
  const server = await fleet.join({ machine, onShutdown: 'leave', parts: [filesPart(files)] });
  const id = await fleet.create();
  const { workload } = await fleet.waitForStatus(id, 'active');
  const listeners = new Map<string, EventListener>();
  const sent: string[] = [];
  await files.part.attached?.({
    workloadId: workload?.workloadId,
    on: (event: string, listener: EventListener) => void listeners.set(event, listener),
    send: async (method: string) => void sent.push(method),
    closed: new AbortController().signal,
  } as unknown as ObservedBrowserConnection);
  listeners.get('Browser.downloadWillBegin')?.({ guid: 'g1', suggestedFilename: 'report.pdf' });

  await server[Symbol.asyncDispose]();
  expect((await fleet.read(id)).status).toBe('active');
  expect(sent.at(-1)).toBe('Browser.cancelDownload');
  const session = { kind: 'session', organizationId: 'acme', id } as const;
  const [last] = (await Array.fromAsync(eventStore.history<'session'>(session))).slice(-1);
  expect(last).toMatchObject({
    type: 'session.file-refused',
    data: { name: 'report.pdf', reason: 'failed', guid: 'g1' },
  });
});
