import { createOwnAddresses } from '#src/kernel/host/own-addresses.ts';
import { createNameResolver } from '#src/kernel/host/resolve-name.ts';
import type { AddressRules } from '#src/features/webhooks/addresses.ts';
import { createWebhookSecrets } from '#src/features/webhooks/signature.ts';
import { createJetStreamWebhookRecords } from '#src/features/webhooks/webhook-records.jetstream.ts';
import type { Infrastructure } from '../infrastructure.ts';

/** What the API and the role that sends both need. */
export function webhookParts({ config, connection, masterKeys }: Infrastructure) {
  const resolve = createNameResolver();
  const rules: AddressRules = {
    allowsPrivate: config.webhooks.allowsPrivate,
    resolve,
    own: createOwnAddresses(config.ownHosts, resolve),
  };
  return {
    records: createJetStreamWebhookRecords(connection),
    ...createWebhookSecrets(masterKeys),
    rules,
  };
}
