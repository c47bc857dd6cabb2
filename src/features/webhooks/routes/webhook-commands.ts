import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Webhook } from '#events/organization/webhook.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import type { WebhookCommand } from '#src/kernel/domain/organization/webhooks.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { flawByName, type AddressRules, type UrlFlaw } from '../addresses.ts';
import type { WebhookSecrets } from '../signature.ts';
import type { WebhookRecords } from '../webhook-records.ts';
import { requestMetadata, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';

/** What the routes of webhooks share. */

/** What the routes of webhooks need beside the core's dependencies. */
export type WebhookParts = {
  records: Pick<WebhookRecords, 'load' | 'attempts'>;
  secretOf: WebhookSecrets['secretOf'];
  rules: AddressRules;
};
export type Dependencies = Pick<ApiDependencies, 'context'> & { webhooks: WebhookParts };

/** Decides commands on the caller's organization, in their order. @returns the webhook after it */
export async function command(
  { context }: Dependencies,
  request: FastifyRequest,
  ...commands: readonly WebhookCommand[]
): Promise<Webhook | null | Rejection> {
  const { caller } = request;
  const organization = {
    kind: 'organization',
    organizationId: caller.organizationId,
  } as const;
  let webhook: Webhook | null = null;
  for (const one of commands) {
    const handled = await handleCommand<'organization'>(
      context,
      organization,
      (state) => decideOrganization(one, state),
      requestMetadata(request, caller),
    );
    if (isRejection(handled)) return handled;
    const id = 'webhook' in one ? one.webhook.webhookId : one.webhookId;
    webhook = handled.state.webhooks?.find(({ webhookId }) => webhookId === id) ?? null;
  }
  return webhook;
}

/** From the leader: one that another process has changed a moment ago is as it is. */
export async function webhooksOf(
  { context }: Dependencies,
  organizationId: string,
): Promise<readonly Webhook[]> {
  const organization = { kind: 'organization', organizationId } as const;
  const fresh = { fromLeader: true };
  const { state } = await loadState<'organization'>(context.eventStore, organization, fresh);
  return state?.webhooks ?? [];
}

/** The caller's webhook; null: the answer, that there is none, is sent. */
export async function foundOr404(
  dependencies: Dependencies,
  request: FastifyRequest<{ Params: { id: string } }>,
  reply: FastifyReply,
): Promise<Webhook | null> {
  const { id } = request.params;
  const all = await webhooksOf(dependencies, request.caller.organizationId);
  const found = all.find(({ webhookId }) => webhookId === id);
  if (found === undefined)
    await sendRejection(reply, reject('WEBHOOK_NOT_FOUND', { webhook_id: id }));
  return found ?? null;
}

const flaws: Record<UrlFlaw, string> = {
  'not-a-url': 'url must be an address like https://hooks.example.com/path, without a fragment.',
  'not-https': 'url must begin with https://.',
  inside: 'url leads to a private, loopback or link-local address.',
  own: 'url leads to this service itself.',
};

/** Why a URL is refused; null: it is not. The URL is not in the answer: it may hold credentials. */
export async function refusalOf(
  { webhooks }: Dependencies,
  url: string,
): Promise<Rejection | null> {
  const flaw = await flawByName(url, webhooks.rules);
  if (flaw === null) return null;
  return reject('INVALID_REQUEST', { field: 'url', reason: flaw }, { message: flaws[flaw] });
}
