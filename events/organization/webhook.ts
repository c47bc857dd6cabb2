import { Type, type Static } from 'typebox';
import { Moment, UserId } from '../fields.ts';

/** Webhooks of an organization: each of its events carries all of its state. */
export const organizationWebhooksMax = 20;
/** Rotations before the last one whose times are kept: so many more secrets may be valid. */
export const earlierRotationsMax = 4;

const WebhookId = Type.String({
  pattern: '^whk_[A-Za-z0-9_-]{1,60}$',
  description: 'id of the webhook',
});
const Endpoint = Type.String({
  minLength: 1,
  maxLength: 1024,
  description: 'the URL; it may hold credentials, and organizations’ events leave it out',
});
const Address = Type.String({
  minLength: 1,
  maxLength: 300,
  description: 'scheme, host and port of the URL, which hold no credentials',
});
const Types = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: 64,
  description: 'types of the events that are sent; empty: all',
});
const Labels = Type.Record(Type.String(), Type.String(), {
  description: 'labels of the sessions whose events are sent; empty: events of any aggregate',
});

/** Why a webhook gets nothing: as a caller asked, after days of failures, or after a 410. */
const DisabledReason = Type.Union(
  [Type.Literal('asked'), Type.Literal('failing'), Type.Literal('gone')],
  {
    description:
      '`asked`: by a caller; `failing`: one event failed for three days; `gone`: answered 410',
  },
);

const fields = {
  webhookId: WebhookId,
  endpoint: Endpoint,
  address: Address,
  types: Types,
  labels: Labels,
  createdAt: Moment,
  by: UserId,
};

/** A webhook of an organization. Its secret is derived and never stored. */
export const Webhook = Type.Object({
  ...fields,
  /** 1, and one more with each rotation: the secret is derived from it. */
  generation: Type.Integer({ minimum: 1, description: 'number of its secret' }),
  rotatedAt: Type.Optional(Moment),
  earlierRotations: Type.Optional(
    Type.Array(Moment, {
      maxItems: earlierRotationsMax,
      description: 'times of the rotations before the last one, newest first',
    }),
  ),
  disabled: Type.Optional(
    Type.Object({
      reason: DisabledReason,
      detail: Type.String({ maxLength: 256, description: 'what the last attempt came to' }),
      at: Moment,
    }),
  ),
  starts: Type.Integer({
    minimum: 0,
    description: 'how often it was enabled again or got another URL: failed attempts count no more',
  }),
  replay: Type.Optional(
    Type.Object({
      number: Type.Integer({ minimum: 1, description: 'how many replays were asked for' }),
      from: Type.Integer({ minimum: 1, description: 'sequence that the last one begins with' }),
    }),
  ),
});
export type Webhook = Static<typeof Webhook>;

export const webhookEvents = {
  'organization.webhook-added': Type.Object(fields),
  'organization.webhook-changed': Type.Object({
    webhookId: WebhookId,
    endpoint: Type.Optional(Endpoint),
    address: Type.Optional(Address),
    types: Type.Optional(Types),
    labels: Type.Optional(Labels),
    by: UserId,
  }),
  'organization.webhook-removed': Type.Object({ webhookId: WebhookId, by: UserId }),
  'organization.webhook-disabled': Type.Object({
    webhookId: WebhookId,
    address: Address,
    reason: DisabledReason,
    detail: Type.String({ maxLength: 256, description: 'what the last attempt came to' }),
    at: Moment,
  }),
  'organization.webhook-enabled': Type.Object({ webhookId: WebhookId, by: UserId }),
  'organization.webhook-secret-rotated': Type.Object({
    webhookId: WebhookId,
    generation: Type.Integer({ minimum: 2, description: 'number of the new secret' }),
    at: Moment,
    by: UserId,
  }),
  'organization.webhook-replay-requested': Type.Object({
    webhookId: WebhookId,
    from: Type.Integer({ minimum: 1, description: 'sequence of the first event to send again' }),
    by: UserId,
  }),
};
