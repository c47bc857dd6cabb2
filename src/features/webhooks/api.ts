import type { FeatureApi } from '../feature.ts';
import { webhookParts } from './compose.ts';
import { deliveries } from './routes/deliveries.ts';
import type { WebhookParts } from './routes/webhook-commands.ts';
import { webhooks } from './routes/webhooks.ts';

export const webhooksApi: FeatureApi<WebhookParts> = {
  open: webhookParts,
  routes(server, api, own) {
    const dependencies = { ...api, webhooks: own };
    webhooks(server, dependencies);
    deliveries(server, dependencies);
  },
};
