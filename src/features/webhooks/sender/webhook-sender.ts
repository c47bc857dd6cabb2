import { filters } from '#events/subjects.ts';
import { keepTrying } from '#src/kernel/async/back-off.ts';
import { createFairSlots } from '#src/kernel/async/fair-slots.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { Leases } from '#src/kernel/messaging/leases.ts';
import type { SenderDependencies } from './dependencies.ts';
import { createOrganizations } from './organizations.ts';
import { createOrphans } from './orphans.ts';
import { keepParts, type Parts } from './parts.ts';
import { createWorkers, type WebhookFigures, type Workers } from './workers.ts';

/** The role `webhooks` of this process. */
export type WebhookSender = {
  /** Figures of the webhooks that this process serves. */
  figures(): WebhookFigures;
} & AsyncDisposable;

/** Sends of this process at once; beyond it organizations take turns. */
const SENDS_MAX = 256;
const SENDS_PER_ORGANIZATION = 32;
/** Reads of the event store at once; beyond it organizations take turns. */
const READS_MAX = 8;
const READS_PER_ORGANIZATION = 4;

/** Starts sending. Any number of processes may do so: a webhook is served by one of them. */
export function startWebhookSender(
  dependencies: Omit<SenderDependencies, 'sendSlots' | 'readSlots'> & { leases: Leases },
): WebhookSender {
  const stop = new AbortController();
  const { signal } = stop;
  const { context, leases, log } = dependencies;
  const sendSlots = createFairSlots({ slots: SENDS_MAX, slotsPerOwner: SENDS_PER_ORGANIZATION });
  const readSlots = createFairSlots({ slots: READS_MAX, slotsPerOwner: READS_PER_ORGANIZATION });
  /** null: this process has not read all organizations yet. */
  let parts: Parts | null = null;
  const workers = createWorkers(
    { ...dependencies, sendSlots, readSlots },
    (webhookId) => parts?.isOurs(webhookId) === true,
  );
  const organizations = createOrganizations({ eventStore: context.eventStore, workers, log });
  const orphans = createOrphans({
    ...dependencies,
    isOrphan: (webhookId) =>
      organizations.areComplete() && !workers.has(webhookId) && parts?.isOurs(webhookId) === true,
  });
  const wanted = () => [...workers.webhookIds(), ...orphans.webhookIds()];
  const onChange = () => {
    void orphans.forget();
    return workers.reconcile();
  };
  const onFailure = (error: unknown) =>
    log.error({ err: error }, 'webhooks cannot be followed; trying again');
  const following = [
    keepTrying(
      signal,
      async (wentWell) => {
        await orphans.list();
        await organizations.follow(signal, () => {
          parts ??= keepParts(leases, { wanted, onChange, signal });
          parts.look();
          wentWell();
        });
      },
      onFailure,
    ),
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
      await parts?.ended;
      await workers.end();
      await parts?.release();
    },
  };
}

/** What is new is read by the workers: an event that cannot be read wakes them by the next one. */
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
