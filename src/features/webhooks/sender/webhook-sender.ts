import { filters } from '#events/subjects.ts';
import { keepTrying } from '#src/kernel/async/back-off.ts';
import { createFairSlots } from '#src/kernel/async/fair-slots.ts';
import { createNotifier } from '#src/kernel/async/notifier.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { LEASE_MS, type Leases } from '#src/kernel/messaging/leases.ts';
import { withLease, type HeldLease } from '#src/kernel/messaging/with-lease.ts';
import type { SenderDependencies } from './dependencies.ts';
import { createOrganizations } from './organizations.ts';
import { createOrphans } from './orphans.ts';
import { createWorkers, type WebhookFigures, type Workers } from './workers.ts';

/** The role `webhooks` of this process. */
export type WebhookSender = {
  /** Figures of the webhooks; zeros while another process sends. */
  figures(): WebhookFigures;
} & AsyncDisposable;

/** The lease of the process that sends. */
export const WEBHOOKS_LEASE = 'webhooks';
/** How often a process that stands by tries to get the lease. */
const STAND_BY_MS = LEASE_MS / 3;
/** Sends at once; beyond it organizations take turns. */
const SENDS_MAX = 256;
const SENDS_PER_ORGANIZATION = 32;
/** Reads of the event store at once; beyond it organizations take turns. */
const READS_MAX = 8;
const READS_PER_ORGANIZATION = 4;

/** Starts sending. Any number of processes may do so: one sends, and the others stand by. */
export function startWebhookSender(
  dependencies: Omit<SenderDependencies, 'sendSlots' | 'readSlots'> & { leases: Leases },
): WebhookSender {
  const stop = new AbortController();
  const { signal } = stop;
  const { context, leases, log } = dependencies;
  const sendSlots = createFairSlots({ slots: SENDS_MAX, slotsPerOwner: SENDS_PER_ORGANIZATION });
  const readSlots = createFairSlots({ slots: READS_MAX, slotsPerOwner: READS_PER_ORGANIZATION });
  let lease: HeldLease | null = null;
  const hasLease = () => lease?.isSure() === true;
  const workers = createWorkers({ ...dependencies, sendSlots, readSlots }, hasLease);
  const organizations = createOrganizations({ eventStore: context.eventStore, workers, log });
  const orphans = createOrphans(dependencies);
  let areRead = false;
  const changes = createNotifier();
  const isWanted = () => areRead && (workers.areWanted() || orphans.areLeft());

  async function follow(wentWell: () => void): Promise<void> {
    await orphans.list();
    await organizations.follow(signal, () => {
      areRead = true;
      changes.notify();
      wentWell();
    });
  }
  /** Takes the lease where there is a webhook: without any, nothing is renewed. */
  async function send(): Promise<void> {
    while (!signal.aborted) {
      if (!isWanted()) await changes.wait(signal);
      else if ((await withLease(leases, WEBHOOKS_LEASE, signal, sendWith)) === null)
        await sleep(STAND_BY_MS, signal);
    }
  }
  async function sendWith(held: HeldLease): Promise<true> {
    lease = held;
    try {
      await workers.reconcile();
      if (organizations.areComplete()) await orphans.forget((id) => workers.has(id));
      while (!held.signal.aborted && isWanted()) await changes.wait(held.signal);
    } finally {
      lease = null;
      await workers.reconcile();
    }
    return true;
  }
  const onFailure = (error: unknown) =>
    log.error({ err: error }, 'webhooks cannot be followed; trying again');
  const following = [
    keepTrying(signal, follow, onFailure),
    keepTrying(signal, send, onFailure),
    keepTrying(
      signal,
      (wentWell) => followEvents(context.eventStore, workers, signal, wentWell),
      onFailure,
    ),
  ];
  return {
    figures: () => workers.figures(),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(following);
    },
  };
}

/** The workers read what is new. An event that cannot be read is noticed with the next one. */
async function followEvents(
  eventStore: EventStore,
  workers: Workers,
  signal: AbortSignal,
  wentWell: () => void,
): Promise<void> {
  const options = { subjects: filters.tenants, after: 'end', signal, onUnreadable: pass } as const;
  for await (const batch of eventStore.subscribe(options)) {
    const organizationOf = ({ aggregate }: (typeof batch)[number]) =>
      'organizationId' in aggregate ? aggregate.organizationId : '';
    workers.wake(new Set(batch.map(organizationOf)));
    wentWell();
  }
}

/** The workers meet the event themselves. */
function pass(): void {}
