import { pino } from 'pino';
import { expect } from 'vitest';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { startWebhookSender } from '#src/features/webhooks/sender/webhook-sender.ts';
import { startApp } from '../service/api-in-memory.ts';
import { createScriptedReceivers } from './scripted-receivers.ts';

export type WebhooksInMemory = Awaited<ReturnType<typeof openWebhooks>>;

/** A service in memory without a sender, and the receivers of its webhooks. */
export async function openWebhooks(wrapEventStore?: (eventStore: EventStore) => EventStore) {
  const app = await startApp(undefined, { allowsPrivateWebhooks: true }, wrapEventStore);
  const receivers = createScriptedReceivers(app);
  return {
    app,
    receivers,
    /** A process of the role `webhooks`. */
    startSender: (changes: Partial<Parameters<typeof startWebhookSender>[0]> = {}) =>
      startWebhookSender({
        ...{ context: app.context, leases: app.leases, ...app.webhooks },
        send: receivers.send,
        count: () => undefined,
        log: pino({ level: 'silent' }),
        ...changes,
      }),
    /** A session that is created and stopped. */
    async stopNew(): Promise<void> {
      const { status, body } = await app.request('POST', '/api/sessions', {});
      expect(status).toBe(201);
      await app.request('DELETE', `/api/sessions/${body.id as string}`);
    },
  };
}
