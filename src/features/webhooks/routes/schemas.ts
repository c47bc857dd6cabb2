import { Type } from 'typebox';
import type { Webhook as StoredWebhook } from '#events/organization/webhook.ts';
import type { AttemptRecord } from '#src/features/webhooks/webhook-records.ts';
import type { Outcome, Progress } from '#src/features/webhooks/progress.ts';
import { Count, Nullable, Timestamp, Words } from '#src/roles/api/schemas/fields.ts';

/** Schemas of webhooks and of the attempts at their deliveries. */

const ID = 'whk_2tYc0NgR8VwXb4n9T6kLw0';
const EVENT_ID = 'evt_c0Zq4nRk1mT8yXwU5sLd2B';
const TIME = '2026-11-20T09:30:00.041Z';

export const WebhookPath = Type.Object({
  id: Type.String({ maxLength: 100, description: 'id of the webhook', examples: [ID] }),
});
export const DeliveryPath = Type.Object({
  id: Type.String({ maxLength: 100, description: 'id of the webhook', examples: [ID] }),
  delivery: Type.String({
    maxLength: 100,
    description: 'id of the delivery: that of its event',
    examples: [EVENT_ID],
  }),
});

const url = Type.String({
  minLength: 1,
  maxLength: 1024,
  description:
    'where events are sent: https, and no private, loopback or link-local address, unless the ' +
    'operator allows them',
  examples: ['https://hooks.example.com/bss'],
});
const types = (known: readonly string[]) =>
  Type.Array(Words(known, { examples: [known[0]] }), {
    maxItems: 64,
    uniqueItems: true,
    description: 'types of the events that are sent; empty: all',
  });
const labels = Type.Record(
  Type.String({ minLength: 1, maxLength: 63 }),
  Type.String({ maxLength: 255 }),
  {
    maxProperties: 8,
    description: 'only events of sessions that have all of these labels; empty: events of anything',
    examples: [{ team: 'web' }],
  },
);
const disabled = Type.Boolean({ description: 'whether nothing is sent', examples: [false] });

/** @param known the types of events that organizations get */
export function webhookBodies(known: readonly string[]) {
  const wanted = Type.Optional(types(known));
  return {
    create: Type.Object(
      { url, types: wanted, labels: Type.Optional(labels) },
      {
        title: 'CreateWebhook',
        additionalProperties: false,
        examples: [{ url: 'https://hooks.example.com/bss', types: ['session.stopped'] }],
      },
    ),
    change: Type.Object(
      {
        url: Type.Optional(url),
        types: wanted,
        labels: Type.Optional(labels),
        disabled: Type.Optional(disabled),
      },
      { title: 'ChangeWebhook', additionalProperties: false, examples: [{ disabled: false }] },
    ),
  };
}

export const ReplayBody = Type.Object(
  {
    from: Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'sequence of the first event to send again; all later ones follow',
      examples: [48_211],
    }),
  },
  { title: 'ReplayWebhook', additionalProperties: false, examples: [{ from: 48_211 }] },
);

const outcomes: readonly Outcome[] = ['delivered', 'failed', 'gone', 'lost'];
const OutcomeWord = Words(outcomes, {
  examples: ['delivered'],
  description: '`gone`: answered 410; `lost`: the event could not be read any more',
});
const Status = Nullable(Type.Integer({ examples: [200] }), {
  description: 'HTTP status of the answer; null: there was none',
});

const webhookFields = {
  id: Type.String({ examples: [ID] }),
  url: Type.String({ examples: ['https://hooks.example.com/bss'] }),
  types: Type.Array(Type.String(), { examples: [['session.stopped']] }),
  labels: Type.Record(Type.String(), Type.String(), { examples: [{ team: 'web' }] }),
  created_at: Timestamp(TIME),
  user_id: Type.String({ description: 'user that created it', examples: ['user_1'] }),
  disabled: Nullable(
    Type.Object({
      reason: Words(['asked', 'failing', 'gone'], {
        examples: ['failing'],
        description:
          '`asked`: by PATCH; `failing`: an event failed for three days; `gone`: answered 410',
      }),
      detail: Type.String({ examples: ['answered 500'] }),
      at: Timestamp(TIME),
    }),
    { description: 'why nothing is sent; null: it is not disabled' },
  ),
  failing_since: Nullable(Timestamp(TIME), {
    description: 'since when attempts fail; null: they do not',
  }),
  last_delivery: Nullable(
    Type.Object({
      at: Timestamp(TIME),
      outcome: OutcomeWord,
      status: Status,
      event_id: Type.String({ examples: [EVENT_ID] }),
    }),
    { description: 'the last attempt; null: there was none' },
  ),
  waiting: Count(0, 'events that are read and not delivered'),
  position: Count(48_211, 'sequence up to which events are read'),
};
export const Webhook = Type.Object(webhookFields, { title: 'Webhook' });
export const WebhookList = Type.Object({ webhooks: Type.Array(Webhook) }, { title: 'WebhookList' });

const secret = Type.String({
  description: 'verifies signatures; given only here',
  examples: ['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD1Jm0hTlYXWU='],
});
export const WebhookWithSecret = Type.Object(
  { ...webhookFields, secret },
  { title: 'WebhookWithSecret' },
);
export const RotatedSecret = Type.Object(
  {
    id: webhookFields.id,
    secret,
    previous_valid_until: Timestamp(TIME, 'until when deliveries are signed with the old one, too'),
  },
  { title: 'RotatedWebhookSecret' },
);

const attemptFields = {
  attempt: Type.Integer({ minimum: 1, examples: [1], description: 'number of the attempt' }),
  at: Timestamp(TIME),
  duration_ms: Count(182),
  outcome: OutcomeWord,
  status: Status,
  reason: Nullable(Type.String({ examples: ['answered 500'] }), {
    description: 'why it failed; null: it did not',
  }),
  excerpt: Nullable(Type.String({ examples: ['ok'] }), {
    description: 'the first 1,024 bytes of the answer; null: it had none',
  }),
  next_at: Nullable(Timestamp(TIME), { description: 'when the next attempt is due; null: never' }),
};
const deliveryFields = {
  id: Type.String({
    description: 'id of the event, and of the delivery; `lost_` and its sequence if it is lost',
    examples: [EVENT_ID],
  }),
  type: Type.String({
    description: 'type of the event; empty where it is lost and was never sent',
    examples: ['session.stopped'],
  }),
  sequence: Count(48_211, 'position of the event'),
};
export const DeliveryPage = Type.Object(
  {
    deliveries: Type.Array(
      Type.Object(
        { ...deliveryFields, last: Type.Object(attemptFields, { title: 'Attempt' }) },
        { title: 'DeliverySummary' },
      ),
      { description: 'those with the newest attempts first' },
    ),
    total: Count(1, 'of those whose attempts are kept: the last 500 attempts, for 7 days'),
  },
  { title: 'DeliveryPage' },
);
export const Delivery = Type.Object(
  {
    ...deliveryFields,
    attempts: Type.Array(Type.Object(attemptFields, { title: 'Attempt' }), {
      description: 'oldest first',
    }),
    body: Nullable(
      Type.String({ examples: ['{"type":"session.stopped","timestamp":"…","data":{}}'] }),
      { description: 'what is sent; null: the event cannot be read any more' },
    ),
  },
  { title: 'Delivery' },
);

/** @param progress null: nothing was sent yet */
export function presentWebhook(webhook: StoredWebhook, progress: Progress | null) {
  const { webhookId: id, endpoint, disabled: off = null, createdAt, by } = webhook;
  const last = progress?.last ?? null;
  const lanes = Object.values(progress?.lanes ?? {});
  return {
    id,
    url: endpoint,
    types: webhook.types,
    labels: webhook.labels,
    created_at: createdAt,
    user_id: by,
    disabled: off,
    failing_since: progress?.failingSince ?? null,
    last_delivery:
      last === null
        ? null
        : { at: last.at, outcome: last.outcome, status: last.status, event_id: last.eventId },
    waiting: lanes.reduce((sum, { open }) => sum + open.length, 0),
    position: progress?.position ?? 0,
  };
}

export function presentAttempt(record: AttemptRecord) {
  const { attempt, at, durationMs, outcome, status, reason, excerpt, nextAt } = record;
  const times = { duration_ms: durationMs, next_at: nextAt };
  return { attempt, at, ...times, outcome, status, reason, excerpt };
}
