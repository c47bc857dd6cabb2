import { createJetStreamLeases } from '#src/messaging/jetstream/jetstream-leases.ts';
import { startWebhookSender, type WebhookSender } from '#src/webhook-sender/webhook-sender.ts';
import { createNameResolver, type AddressRules } from '#src/webhooks/addresses.ts';
import { createWebhookSecrets } from '#src/webhooks/signature.ts';
import { createJetStreamWebhookRecords } from '#src/webhooks/webhook-records.jetstream.ts';
import type { Infrastructure } from '../infrastructure.ts';

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

/** What the API and the role that sends both need. */
export function webhookParts({ config, connection, masterKey }: Infrastructure) {
  const rules: AddressRules = {
    allowsPrivate: config.webhooks.allowsPrivate,
    resolve: createNameResolver(),
  };
  return {
    records: createJetStreamWebhookRecords(connection),
    secretOf: createWebhookSecrets(Buffer.from(masterKey)),
    rules,
  };
}
