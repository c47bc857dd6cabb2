import type { FeatureProcess } from '../feature.ts';
import type { AddressRules } from './addresses.ts';
import { createWebhookSecrets } from './signature.ts';
import { createJetStreamWebhookRecords } from './webhook-records.jetstream.ts';

/** What the routes and the sender both need. */
export function webhookParts(process: FeatureProcess) {
  const { allowsPrivate } = process.config.webhooks;
  const { resolveName: resolve, ownAddresses: own } = process;
  const rules: AddressRules = { allowsPrivate, resolve, own };
  return {
    records: createJetStreamWebhookRecords(process.connection),
    ...createWebhookSecrets(process.masterKeys),
    rules,
  };
}
