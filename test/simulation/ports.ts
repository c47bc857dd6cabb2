import type { StoreMaintenance } from '#projections/store/maintenance.ts';
import type { Views } from '#projections/store/views.ts';
import type { DeadLetterStore } from '#src/kernel/messaging/dead-letters.ts';
import type { Leases } from '#src/kernel/messaging/leases.ts';
import type { Timers } from '#src/kernel/messaging/timers.ts';
import type { Delivery, OpenWorkQueue, WorkQueue } from '#src/kernel/messaging/work-queue.ts';
import { never, pause, type Network, type Process, type World } from './world.ts';

/** The read model as one process reaches it. */
export function viewsOver(
  process: Process,
  { call, atServer }: Network,
  stored: Views & StoreMaintenance,
): Views & StoreMaintenance {
  const isReachable = () => !process.cutOff.has('read-model');
  async function waitForCheckpoint(projection: string, sequence: number, timeoutMs: number) {
    if (!isReachable()) {
      await pause(timeoutMs);
      return false;
    }
    const isReached = await atServer(() =>
      stored.waitForCheckpoint(projection, sequence, timeoutMs),
    );
    return process.isDead ? never<boolean>() : isReached;
  }
  const own = { isReachable, waitForCheckpoint, [Symbol.asyncDispose]: async () => {} };
  return { ...callsOf(stored, (what, effect) => call('read-model', what, effect)), ...own };
}

/** Every method as a call; those that return no promise are not used by what is simulated. */
function callsOf<Port extends object>(
  port: Port,
  call: (what: string, effect: () => Promise<unknown>) => Promise<unknown>,
): Port {
  const methods = Object.entries(port).map(([name, method]) => [
    name,
    (...given: unknown[]) =>
      call(name, async () => (method as (...all: unknown[]) => unknown)(...given)),
  ]);
  return Object.fromEntries(methods) as Port;
}

export function leasesOver({ call }: Network, stored: Leases): Leases {
  return callsOf(stored, (what, effect) => call('event-log', `lease: ${what}`, effect));
}

export function deadLettersOver({ call }: Network, stored: DeadLetterStore): DeadLetterStore {
  return callsOf(stored, (what, effect) => call('event-log', `dead letter: ${what}`, effect));
}

export function workQueuesOver(
  world: World,
  process: Process,
  network: Network,
  open: OpenWorkQueue,
): OpenWorkQueue {
  return async (name, subjects, bound) => {
    const queue = await network.call('event-log', 'open a queue', () =>
      open(name, subjects, bound),
    );
    return workQueueOver(world, process, network, queue);
  };
}

/**
 * A work queue as one process reaches it: an item that was delivered to a process that ends, and
 * one whose acknowledgement is lost, is delivered again when its lease has ended.
 */
function workQueueOver<Item>(
  world: World,
  process: Process,
  network: Network,
  queue: WorkQueue<Item>,
): WorkQueue<Item> {
  const { call, reach, atServer } = network;

  function deliveryOver(delivery: Delivery<Item>): Delivery<Item> {
    const isHeard = () => !process.isDead && !process.cutOff.has('event-log');
    return {
      item: delivery.item,
      deliveries: delivery.deliveries,
      ack: () => call('event-log', 'acknowledge', () => delivery.ack()),
      retryAfter: (ms) => isHeard() && atServer(() => delivery.retryAfter(ms)),
      extendLease: () => isHeard() && atServer(() => delivery.extendLease()),
      deadLetter(reason) {
        world.tell(process.name, `gives an item up: ${reason}`);
        if (isHeard()) atServer(() => delivery.deadLetter(reason));
      },
    };
  }
  return {
    async next(waitMs, signal) {
      await reach('event-log', 'pull');
      const either = AbortSignal.any([signal, process.died.signal]);
      const delivery = await atServer(() => queue.next(waitMs, either));
      if (process.isDead) return never();
      await pause(network.latencyMs());
      return delivery === null ? null : deliveryOver(delivery);
    },
    pending: () => call('event-log', 'pending', () => queue.pending()),
  };
}

/** Timers fire by the servers' clock, whatever the process's clock shows. */
export function timersOver(
  world: World,
  process: Process,
  network: Network,
  timers: Timers & { fireDue(): number },
): Timers {
  const { call } = network;
  return {
    schedule: (timer, at) =>
      call('event-log', `set timer ${timer.kind}`, async () => {
        await timers.schedule(timer, at);
        const inMs = at.getTime() - world.time.now();
        if (inMs > 0) setTimeout(() => timers.fireDue(), inMs + 1);
      }),
    cancel: (organizationId, sessionId) =>
      call('event-log', 'cancel timers', () => timers.cancel(organizationId, sessionId)),
    scheduled: (organizationId) =>
      call('event-log', 'timers', () => timers.scheduled(organizationId)),
    async fired(name) {
      const queue = await call('event-log', 'open timers', () => timers.fired(name));
      return workQueueOver(world, process, network, queue);
    },
  };
}
