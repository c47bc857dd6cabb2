import {
  earlierRotationsMax,
  organizationWebhooksMax,
  type Webhook,
} from '#events/organization/webhook.ts';
import type { OrganizationEvent, OrganizationState } from '#events/organization.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';

/** A webhook as its caller wants it. `endpoint` is its URL, `address` what of it is public. */
export type NewWebhook = Pick<
  Webhook,
  'webhookId' | 'endpoint' | 'address' | 'types' | 'labels' | 'createdAt' | 'by'
>;

/** What of a webhook is changed; fields that are absent stay. */
export type WebhookChange = Partial<Pick<Webhook, 'endpoint' | 'address' | 'types' | 'labels'>>;

type DisabledReason = NonNullable<Webhook['disabled']>['reason'];

export type WebhookCommand =
  | { type: 'AddWebhook'; webhook: NewWebhook }
  | { type: 'ChangeWebhook'; webhookId: string; change: WebhookChange; by: string }
  | { type: 'RemoveWebhook'; webhookId: string; by: string }
  /** `starts`: those that the failures were counted from; the webhook stays if it has more. */
  | {
      type: 'DisableWebhook';
      webhookId: string;
      reason: DisabledReason;
      detail: string;
      at: string;
      starts?: number;
    }
  | { type: 'EnableWebhook'; webhookId: string; by: string }
  | { type: 'RotateWebhookSecret'; webhookId: string; at: string; by: string }
  | { type: 'ReplayWebhook'; webhookId: string; from: number; by: string };

export function isWebhookCommand(command: { type: string }): command is WebhookCommand {
  return command.type.includes('Webhook');
}

export function decideWebhook(
  command: WebhookCommand,
  { webhooks = [] }: Pick<OrganizationState, 'webhooks'>,
): OrganizationEvent[] | Rejection {
  if (command.type === 'AddWebhook') {
    if (webhooks.length >= organizationWebhooksMax)
      return reject('WEBHOOK_LIMIT_EXCEEDED', { limit: organizationWebhooksMax });
    return [{ type: 'organization.webhook-added', data: command.webhook }];
  }
  const { webhookId } = command;
  const found = webhooks.find((one) => one.webhookId === webhookId);
  if (found === undefined) return reject('WEBHOOK_NOT_FOUND', { webhook_id: webhookId });
  switch (command.type) {
    case 'ChangeWebhook': {
      const data = { webhookId, ...command.change, by: command.by };
      return isSame(found, command.change) ? [] : [{ type: 'organization.webhook-changed', data }];
    }
    case 'RemoveWebhook':
      return [{ type: 'organization.webhook-removed', data: { webhookId, by: command.by } }];
    case 'DisableWebhook': {
      const { type: _, starts = found.starts, ...data } = command;
      if (found.disabled !== undefined || starts !== found.starts) return [];
      const { address } = found;
      return [{ type: 'organization.webhook-disabled', data: { ...data, address } }];
    }
    case 'EnableWebhook':
      if (found.disabled === undefined) return [];
      return [{ type: 'organization.webhook-enabled', data: { webhookId, by: command.by } }];
    case 'RotateWebhookSecret': {
      const { at, by } = command;
      const generation = found.generation + 1;
      const data = { webhookId, generation, at, by };
      return [{ type: 'organization.webhook-secret-rotated', data }];
    }
    case 'ReplayWebhook': {
      const { from, by } = command;
      return [{ type: 'organization.webhook-replay-requested', data: { webhookId, from, by } }];
    }
  }
}

function isSame(webhook: Webhook, change: WebhookChange): boolean {
  return Object.entries(change).every(
    ([field, value]) =>
      JSON.stringify(webhook[field as keyof WebhookChange]) === JSON.stringify(value),
  );
}

export type WebhookEvent = Extract<OrganizationEvent, { type: `organization.webhook-${string}` }>;

export function isWebhookEvent(event: OrganizationEvent): event is WebhookEvent {
  return event.type.startsWith('organization.webhook-');
}

/** The organization's webhooks after an event of one of them, oldest first. */
export function evolveWebhooks(webhooks: readonly Webhook[], event: WebhookEvent): Webhook[] {
  if (event.type === 'organization.webhook-added')
    return [...webhooks, { ...event.data, generation: 1, starts: 0 }];
  const { webhookId } = event.data;
  if (event.type === 'organization.webhook-removed')
    return webhooks.filter((one) => one.webhookId !== webhookId);
  return webhooks.map((one) => (one.webhookId === webhookId ? evolveWebhook(one, event) : one));
}

function evolveWebhook(
  webhook: Webhook,
  event: Exclude<
    WebhookEvent,
    { type: 'organization.webhook-added' | 'organization.webhook-removed' }
  >,
): Webhook {
  switch (event.type) {
    case 'organization.webhook-changed': {
      const { webhookId: _, by: __, ...change } = event.data;
      const starts = webhook.starts + (change.endpoint === undefined ? 0 : 1);
      return { ...webhook, ...change, starts };
    }
    case 'organization.webhook-disabled': {
      const { reason, detail, at } = event.data;
      return { ...webhook, disabled: { reason, detail, at } };
    }
    case 'organization.webhook-enabled': {
      const { disabled: _, ...enabled } = webhook;
      return { ...enabled, starts: webhook.starts + 1 };
    }
    case 'organization.webhook-secret-rotated': {
      const { generation, at } = event.data;
      const { rotatedAt, earlierRotations = [] } = webhook;
      if (rotatedAt === undefined) return { ...webhook, generation, rotatedAt: at };
      const earlier = [rotatedAt, ...earlierRotations].slice(0, earlierRotationsMax);
      return { ...webhook, generation, rotatedAt: at, earlierRotations: earlier };
    }
    case 'organization.webhook-replay-requested': {
      const number = (webhook.replay?.number ?? 0) + 1;
      return { ...webhook, replay: { number, from: event.data.from } };
    }
  }
}
