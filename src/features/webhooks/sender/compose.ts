import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import {
  startWebhookSender,
  type WebhookSender,
} from '#src/features/webhooks/sender/webhook-sender.ts';
import type { FeatureProcess } from '../../feature.ts';
import { webhookParts } from '../compose.ts';

/** Starts the role `webhooks`. */
export async function composeSender(process: FeatureProcess): Promise<WebhookSender> {
  const { connection, context, metrics, log } = process;
  const sender = startWebhookSender({
    ...webhookParts(process),
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
