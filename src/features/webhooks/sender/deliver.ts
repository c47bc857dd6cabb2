import type { RecordedEvent } from '#events/events.ts';
import type { Webhook } from '#events/organization/webhook.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { metadataFrom } from '#src/commands/metadata.ts';
import { bodyOf } from '#src/features/webhooks/body.ts';
import { signedHeaders, validGenerations } from '#src/features/webhooks/signature.ts';
import type { SenderDependencies } from './dependencies.ts';
import { sendOverHttp, type SendResult } from './send.ts';

/** Time limit of an attempt, from the name to the answer. */
const TIMEOUT_MS = 15_000;

/** Signs an event and sends it, once. @returns null if the signal aborted meanwhile */
export async function deliver(
  { context: { now }, secretsOf, rules, ...given }: SenderDependencies,
  webhook: Webhook,
  event: RecordedEvent,
  signal: AbortSignal,
): Promise<SendResult | null> {
  const { timeoutMs = TIMEOUT_MS, send = sendOverHttp } = given;
  const body = bodyOf(event);
  const timestamp = Math.floor(now() / 1_000);
  const secrets = secretsOf(webhook.webhookId, validGenerations(webhook, now()));
  const headers = signedHeaders({ id: event.id, timestamp, body }, secrets);
  const outgoing = { url: webhook.endpoint, body, headers };
  try {
    return await send(outgoing, { rules, timeoutMs, now, signal });
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  }
}

/** Disables the webhook after the event that could not be delivered. */
export async function disable(
  { context }: Pick<SenderDependencies, 'context'>,
  organizationId: string,
  { webhookId, starts }: Webhook,
  event: RecordedEvent,
  { outcome, reason }: Pick<SendResult, 'outcome' | 'reason'>,
): Promise<void> {
  await handleCommand<'organization'>(
    context,
    { kind: 'organization', organizationId },
    (organization) =>
      decideOrganization(
        {
          type: 'DisableWebhook',
          webhookId,
          reason: outcome === 'gone' ? 'gone' : 'failing',
          detail: reason ?? '',
          at: new Date(context.now()).toISOString(),
          starts,
        },
        organization,
      ),
    metadataFrom(event, 'webhooks/deliveries'),
  );
}
