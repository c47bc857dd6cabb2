import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import {
  startWebhookSender,
  type WebhookSender,
} from '#src/features/webhooks/sender/webhook-sender.ts';
import type { Infrastructure } from '../infrastructure.ts';
import { webhookParts } from './webhook-parts.ts';

/** Starts the role `webhooks`. */
export async function composeWebhooks(infrastructure: Infrastructure): Promise<WebhookSender> {
  const { connection, context, metrics, log } = infrastructure;
  const sender = startWebhookSender({
    ...webhookParts(infrastructure),
    context,
    leases: await createJetStreamLeases(connection),
    count: (outcome) => metrics.webhookDelivery(outcome),
    log,
  });
  metrics.watch(
    ['bss_webhook_lag_seconds', 'bss_webhooks_failing', 'bss_webhooks_disabled'],
    () => {
      const { lagSeconds, failing, disabled } = sender.figures();
      return {
        bss_webhook_lag_seconds: lagSeconds,
        bss_webhooks_failing: failing,
        bss_webhooks_disabled: disabled,
      };
    },
  );
  return sender;
}
