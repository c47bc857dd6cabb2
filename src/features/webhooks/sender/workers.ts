import type { Webhook } from '#events/organization/webhook.ts';
import type { SenderDependencies } from './dependencies.ts';
import { forgetRecords } from './orphans.ts';
import { startWorker, type Worker } from './worker.ts';

/** Figures of a process. `lagSeconds`: age of the oldest event that is not delivered. */
export type WebhookFigures = { failing: number; disabled: number; lagSeconds: number };

/** The workers of the webhooks, while this process sends. */
export type Workers = {
  /** The webhooks of an organization, as they are now. */
  observe(organizationId: string, webhooks: readonly Webhook[]): void;
  /** These organizations have new events. */
  wake(organizationIds: ReadonlySet<string>): void;
  /**
   * Starts all workers if this process has the lease, ends them if it has not. Resolves when those
   * have ended whose end is under way.
   */
  reconcile(): Promise<void>;
  /** Whether an organization has the webhook. */
  has(webhookId: string): boolean;
  /** Whether there is any webhook. */
  areWanted(): boolean;
  figures(): WebhookFigures;
};

/** @param hasLease whether this process sends */
export function createWorkers(dependencies: SenderDependencies, hasLease: () => boolean): Workers {
  const known = new Map<string, { organizationId: string; webhook: Webhook }>();
  const idsOf = new Map<string, ReadonlySet<string>>();
  const workers = new Map<string, Worker>();
  /** Ends that are under way: the same webhook begins again after it. */
  const ending = new Map<string, Promise<void>>();

  function end(webhookId: string, worker: Worker): void {
    workers.delete(webhookId);
    const ended = async () => {
      await worker[Symbol.asyncDispose]();
      if (ending.delete(webhookId)) settle(webhookId);
    };
    ending.set(webhookId, ended());
  }
  /** Starts or ends the webhook's worker, if it has to be. */
  function settle(webhookId: string): void {
    const found = known.get(webhookId);
    if (found === undefined) return;
    const isWanted = hasLease();
    const worker = workers.get(webhookId);
    if (worker !== undefined && !isWanted) end(webhookId, worker);
    if (worker === undefined && isWanted && !ending.has(webhookId))
      workers.set(
        webhookId,
        startWorker(dependencies, found.organizationId, found.webhook, hasLease),
      );
  }
  function remove(webhookId: string): void {
    known.delete(webhookId);
    const worker = workers.get(webhookId);
    if (worker === undefined) return;
    end(webhookId, worker);
    void ending.get(webhookId)?.then(() => forgetRecords(dependencies, webhookId));
  }
  return {
    async reconcile() {
      for (const webhookId of known.keys()) settle(webhookId);
      await Promise.all(ending.values());
    },
    observe(organizationId, webhooks) {
      const now = new Set(webhooks.map(({ webhookId }) => webhookId));
      for (const webhookId of idsOf.get(organizationId) ?? [])
        if (!now.has(webhookId)) remove(webhookId);
      if (now.size > 0 || idsOf.has(organizationId)) idsOf.set(organizationId, now);
      for (const webhook of webhooks) {
        known.set(webhook.webhookId, { organizationId, webhook });
        workers.get(webhook.webhookId)?.change(webhook);
        settle(webhook.webhookId);
      }
    },
    wake(organizationIds) {
      for (const organizationId of organizationIds)
        for (const webhookId of idsOf.get(organizationId) ?? []) workers.get(webhookId)?.wake();
    },
    has: (webhookId) => known.has(webhookId),
    areWanted: () => known.size > 0,
    figures() {
      const ours = [...workers.keys()].map((webhookId) => known.get(webhookId)?.webhook);
      const disabled = ours.filter((webhook) => webhook?.disabled !== undefined).length;
      return { disabled, ...figuresOf([...workers.values()]) };
    },
  };
}

function figuresOf(workers: readonly Worker[]): Omit<WebhookFigures, 'disabled'> {
  return {
    failing: workers.filter((one) => one.isFailing()).length,
    lagSeconds: Math.max(0, ...workers.map((one) => one.lagMs())) / 1_000,
  };
}
