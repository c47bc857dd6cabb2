import type { AttemptRecord, StoredProgress, WebhookRecords } from './webhook-records.ts';

const KEPT_MAX = 500;

export function createMemoryWebhookRecords(): WebhookRecords {
  const stored = new Map<string, StoredProgress>();
  const kept = new Map<string, AttemptRecord[]>();
  const nothing: StoredProgress = { progress: null, revision: 0 };
  return {
    load: async (webhookId) => stored.get(webhookId) ?? nothing,
    async save(webhookId, progress, revision) {
      if ((stored.get(webhookId)?.revision ?? 0) !== revision) return null;
      stored.set(webhookId, { progress: structuredClone(progress), revision: revision + 1 });
      return revision + 1;
    },
    async note(webhookId, attempt) {
      kept.set(webhookId, [...(kept.get(webhookId) ?? []), attempt].slice(-KEPT_MAX));
    },
    async forget(webhookId) {
      stored.delete(webhookId);
      kept.delete(webhookId);
    },
    webhookIds: async () => [...stored.keys()],
    attempts: async (webhookId) => kept.get(webhookId) ?? [],
  };
}
