import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { isSettled } from '#src/kernel/domain/session/session.ts';
import type { Delivery, OpenWorkQueue } from '#src/kernel/messaging/work-queue.ts';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import { eventually } from '#test/support/service/service.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

type Change = (delivery: Delivery<RecordedEvent>) => Partial<Delivery<RecordedEvent>>;

/** So long a request is given back for other servers. */
const YIELD_MS = 1_000;

let fleet: Awaited<ReturnType<typeof openFleet>>;
afterEach(() => fleet[Symbol.asyncDispose]());

/** The provisioners' queue with changed deliveries. */
function changed(open: OpenWorkQueue, change: Change): OpenWorkQueue {
  return async (...options) => {
    const workQueue = await open(...options);
    async function next(waitMs: number, signal: AbortSignal) {
      const delivery = await workQueue.next(waitMs, signal);
      return delivery === null ? null : { ...delivery, ...change(delivery) };
    }
    return { ...workQueue, next };
  };
}

/**
 * A server has requeued a request after failed launches, and another server is full.
 * @returns the request, what makes room on the full server, and what mends the one that failed
 */
async function requeuedBeside(change: Change) {
  fleet = await openFleet({ items: (open) => changed(open, change) });
  const full = await fleet.join({ limits: { minIdle: 0, maxIdle: 0, max: 1 } });
  const first = await fleet.create();
  await fleet.waitForStatus(first, 'active');
  let isBroken = true;
  const random = () => (isBroken ? 0 : 1);
  const machine = await createSimulatedBrowsers({ launchMs: 5, failRate: 0.5, random });
  onTestFinished(() => machine[Symbol.asyncDispose]());
  const broken = await fleet.join({ machine, limits: { minIdle: 0, maxIdle: 0 } });
  const id = await fleet.create();
  await eventually(
    async () => (await fleet.read(id)).triedServers !== undefined,
    'the request is requeued',
  );
  const stop = { type: 'StopSession', reason: 'user', now: Date.now() } as const;
  return {
    ...{ id, full, broken },
    makeRoom: () => fleet.sendSessionCommand(first, stop),
    mend: () => void (isBroken = false),
  };
}

/** The session once it has a browser or has failed. */
function outcomeOf(id: string): Promise<SessionState> {
  return eventually(async () => {
    const state = await fleet.read(id);
    return isSettled(state) && state;
  }, `${id} has a browser or has failed`);
}

describe('a request that a server has requeued', () => {
  test('is left to the other servers, although its item came back because others come first', async () => {
    const { id, full, broken, makeRoom } = await requeuedBeside(({ deliveries }) => {
      return { deliveries: deliveries + 20 };
    });
    await makeRoom();
    const { status, workload, triedServers } = await outcomeOf(id);
    expect([status, workload?.serverId]).toEqual(['active', full.id]);
    expect(triedServers).toEqual([broken.id]);
  });

  test('is left to them by an item from before the requeue too', async () => {
    let requeued: string | null = null;
    let redeliveries = 0;
    const { id, full, broken, makeRoom } = await requeuedBeside((delivery) => {
      const { type, aggregate } = delivery.item;
      if (type !== 'session.requested' || !('id' in aggregate)) return {};
      if (aggregate.id === requeued) redeliveries += 1;
      // Until then each acknowledgement is lost.
      return requeued === null ? { ack: async () => delivery.retryAfter(50) } : {};
    });
    requeued = id;
    await eventually(() => redeliveries > 0, 'the first item is delivered again');
    await makeRoom();
    const { status, workload, triedServers } = await outcomeOf(id);
    expect([status, workload?.serverId]).toEqual(['active', full.id]);
    expect(triedServers).toEqual([broken.id]);
  });

  test('is not left to them by an operator’s retry', async () => {
    const delays: number[] = [];
    const { id } = await requeuedBeside((delivery) => {
      const retryAfter = (ms: number) => {
        delays.push(ms);
        delivery.retryAfter(ms);
      };
      return { isRetry: true, retryAfter };
    });
    expect(await outcomeOf(id)).toMatchObject({ endedReason: 'launch_failed' });
    expect(delays).not.toContain(YIELD_MS);
  });

  test('is accepted there at once if no other server is left', async () => {
    let yielded = 0;
    const { id, full, broken, mend } = await requeuedBeside((delivery) => ({
      retryAfter(ms: number) {
        if (ms === YIELD_MS) yielded += 1;
        delivery.retryAfter(ms);
      },
    }));
    mend();
    await eventually(() => yielded > 0, 'it is left to the others');
    await full[Symbol.asyncDispose]();
    const before = yielded;
    const { status, workload } = await outcomeOf(id);
    expect([status, workload?.serverId]).toEqual(['active', broken.id]);
    // The read model may show the server for a moment after it has left; 8 s are seven yields.
    expect(yielded).toBeLessThanOrEqual(before + 3);
  });

  test('is accepted there once more if no other server has had room', async () => {
    const { id, broken, mend } = await requeuedBeside(() => ({}));
    mend();
    const { status, workload, triedServers } = await outcomeOf(id);
    expect([status, workload?.serverId]).toEqual(['active', broken.id]);
    expect(triedServers).toEqual([broken.id]);
  });
});

test('an operator’s retry of a dead letter is handled before the organization whose turn it is', async () => {
  const retried = new Set<string>();
  const isRetry = ({ item }: Delivery<RecordedEvent>) => {
    return { isRetry: 'id' in item.aggregate && retried.has(item.aggregate.id) };
  };
  fleet = await openFleet({ items: (open) => changed(open, isRetry) });
  await fleet.join({ limits: { minIdle: 0, maxIdle: 0, max: 1 } });
  const first = await fleet.create();
  await fleet.waitForStatus(first, 'active');
  const second = await fleet.create();
  retried.add(second);
  const late = await fleet.create({}, 'beta');
  const stop = { type: 'StopSession', reason: 'user', now: Date.now() } as const;
  await fleet.sendSessionCommand(first, stop);
  const isServed = async () => {
    const states = await Promise.all([second, late].map(fleet.read));
    return states.find(({ status }) => status === 'active') ?? null;
  };
  expect((await eventually(isServed, 'one of them is active')).id).toBe(second);
});
