import type { Static } from 'typebox';
import type * as schemas from '#src/features/webhooks/routes/schemas.ts';
import { queryOf, type CallOptions, type Requester } from './requester.ts';

/** A URL that the organization's events are sent to. */
export type Webhook = Static<typeof schemas.Webhook>;
/** `secret` verifies signatures, and is shown this once. */
export type WebhookWithSecret = Static<typeof schemas.WebhookWithSecret>;
export type CreateWebhook = {
  url: string;
  types?: string[];
  labels?: Record<string, string>;
};
/** Fields that are left out stay; `disabled: false` enables it again. */
export type ChangeWebhook = Partial<CreateWebhook> & { disabled?: boolean };
/** The old secret signs beside the new one until `previous_valid_until`. */
export type RotatedWebhookSecret = Static<typeof schemas.RotatedSecret>;
export type DeliveryPage = Static<typeof schemas.DeliveryPage>;
export type Delivery = Static<typeof schemas.Delivery>;

/** The organization's webhooks. Every method throws ServiceError or NoAnswer. */
export type Webhooks = {
  /** Without an answer it is not repeated: there might be two. */
  create(asked: CreateWebhook, options?: CallOptions): Promise<WebhookWithSecret>;
  list(options?: CallOptions): Promise<Webhook[]>;
  get(id: string, options?: CallOptions): Promise<Webhook>;
  change(id: string, change: ChangeWebhook, options?: CallOptions): Promise<Webhook>;
  remove(id: string, options?: CallOptions): Promise<void>;
  rotateSecret(id: string, options?: CallOptions): Promise<RotatedWebhookSecret>;
  deliveries(
    id: string,
    query?: { limit?: number; offset?: number },
    options?: CallOptions,
  ): Promise<DeliveryPage>;
  delivery(id: string, deliveryId: string, options?: CallOptions): Promise<Delivery>;
  /** Sends the events from a sequence on again. */
  replay(id: string, from: number, options?: CallOptions): Promise<void>;
};

const PATH = '/api/webhooks';
const pathOf = (id: string) => `${PATH}/${encodeURIComponent(id)}`;

export function createWebhooks(requester: Requester): Webhooks {
  return {
    create: (body, options) => requester.json({ method: 'POST', path: PATH, body, ...options }),
    async list(options) {
      const request = { method: 'GET', path: PATH, ...options } as const;
      return (await requester.json<Static<typeof schemas.WebhookList>>(request)).webhooks;
    },
    get: (id, options) => requester.json({ method: 'GET', path: pathOf(id), ...options }),
    change: (id, body, options) =>
      requester.json({ method: 'PATCH', path: pathOf(id), body, ...options }),
    remove: (id, options) =>
      requester.read({ method: 'DELETE', path: pathOf(id), ...options }, async () => undefined),
    rotateSecret: (id, options) =>
      requester.json({ method: 'POST', path: `${pathOf(id)}/rotate-secret`, ...options }),
    deliveries(id, query = {}, options = {}) {
      const path = `${pathOf(id)}/deliveries`;
      return requester.json({ method: 'GET', path, query: queryOf(query), ...options });
    },
    delivery(id, deliveryId, options) {
      const path = `${pathOf(id)}/deliveries/${encodeURIComponent(deliveryId)}`;
      return requester.json({ method: 'GET', path, ...options });
    },
    replay(id, from, options) {
      const path = `${pathOf(id)}/replay`;
      const request = { method: 'POST', path, body: { from }, ...options } as const;
      return requester.read(request, async () => undefined);
    },
  };
}
