import { organizationWebhooksMax } from '#events/organization/webhook.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { newId } from '#src/kernel/ids.ts';
import type { WebhookCommand } from '#src/kernel/domain/organization/webhooks.ts';
import { shownAddress } from '#src/features/webhooks/addresses.ts';
import { GRACE_MS } from '#src/features/webhooks/signature.ts';
import { typesOf } from '#src/roles/api/event-stream/event-query.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { emptyResponse, response, type ApiServer } from '#src/roles/api/http/route.ts';
import {
  presentWebhook,
  RotatedSecret,
  Webhook,
  webhookBodies,
  WebhookList,
  WebhookPath,
  WebhookWithSecret,
} from './schemas.ts';
import {
  command,
  foundOr404,
  refusalOf,
  webhooksOf,
  type Dependencies,
} from './webhook-commands.ts';

const bodies = webhookBodies(typesOf(['session', 'ledger', 'organization', 'profile']));
const { changeKey: cost } = costs;

/** /api/webhooks: where the organization's events are sent. */
export function webhooks(server: ApiServer, dependencies: Dependencies): void {
  createWebhook(server, dependencies);
  listWebhooks(server, dependencies);
  getWebhook(server, dependencies);
  changeWebhook(server, dependencies);
  removeWebhook(server, dependencies);
  rotateSecret(server, dependencies);
}

function createWebhook(server: ApiServer, dependencies: Dependencies): void {
  server.route({
    method: 'POST',
    url: '/api/webhooks',
    schema: {
      operationId: 'createWebhook',
      tags: ['Webhooks'],
      summary: 'Create a webhook',
      description:
        'Events from now on are sent to the URL, signed by the Standard Webhooks specification, ' +
        `each at least once and those of a session in order. At most ${organizationWebhooksMax}.`,
      body: bodies.create,
      response: { 201: response('The webhook with its secret', WebhookWithSecret) },
    },
    config: { action: 'administer', refusals: ['WEBHOOK_LIMIT_EXCEEDED'], cost },
    async handler(request, reply) {
      const { url, types = [], labels = {} } = request.body;
      const refusal = await refusalOf(dependencies, url);
      if (refusal !== null) return sendRejection(reply, refusal);
      const createdAt = new Date(dependencies.context.now()).toISOString();
      const webhookId = newId('whk');
      const webhook = {
        webhookId,
        endpoint: url,
        address: shownAddress(url),
        types,
        labels,
        createdAt,
        by: request.caller.userId,
      };
      const added = await command(dependencies, request, { type: 'AddWebhook', webhook });
      if (added === null) throw new Error(`the webhook ${webhookId} was added and is not there`);
      if (isRejection(added)) return sendRejection(reply, added);
      const secret = dependencies.webhooks.secretOf(webhookId, added.generation);
      return reply.code(201).send({ ...presentWebhook(added, null), secret });
    },
  });
}

function listWebhooks(server: ApiServer, dependencies: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/webhooks',
    schema: {
      operationId: 'listWebhooks',
      tags: ['Webhooks'],
      summary: 'List the organization’s webhooks',
      response: { 200: response('Oldest first', WebhookList) },
    },
    config: { action: 'administer', refusals: [] },
    async handler({ caller }, reply) {
      const all = await webhooksOf(dependencies, caller.organizationId);
      const presented = all.map(async (webhook) => {
        const { progress } = await dependencies.webhooks.records.load(webhook.webhookId);
        return presentWebhook(webhook, progress);
      });
      return reply.send({ webhooks: await Promise.all(presented) });
    },
  });
}

function getWebhook(server: ApiServer, dependencies: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/webhooks/:id',
    schema: {
      operationId: 'getWebhook',
      tags: ['Webhooks'],
      summary: 'Get a webhook',
      params: WebhookPath,
      response: { 200: response('The webhook', Webhook) },
    },
    config: { action: 'administer', refusals: ['WEBHOOK_NOT_FOUND'] },
    async handler(request, reply) {
      const found = await foundOr404(dependencies, request, reply);
      if (found === null) return reply;
      const { progress } = await dependencies.webhooks.records.load(found.webhookId);
      return reply.send(presentWebhook(found, progress));
    },
  });
}

function changeWebhook(server: ApiServer, dependencies: Dependencies): void {
  server.route({
    method: 'PATCH',
    url: '/api/webhooks/:id',
    schema: {
      operationId: 'changeWebhook',
      tags: ['Webhooks'],
      summary: 'Change a webhook',
      description:
        'Fields that are left out stay. `disabled: false` goes on where the webhook stopped: ' +
        'what happened meanwhile is sent.',
      params: WebhookPath,
      body: bodies.change,
      response: { 200: response('The webhook', Webhook) },
    },
    config: { action: 'administer', refusals: ['WEBHOOK_NOT_FOUND'], cost },
    async handler(request, reply) {
      const { id: webhookId } = request.params;
      const { url, types, labels, disabled } = request.body;
      const refusal = url === undefined ? null : await refusalOf(dependencies, url);
      if (refusal !== null) return sendRejection(reply, refusal);
      const by = request.caller.userId;
      const change = {
        ...(url === undefined ? {} : { endpoint: url, address: shownAddress(url) }),
        ...(types === undefined ? {} : { types }),
        ...(labels === undefined ? {} : { labels }),
      };
      const commands: WebhookCommand[] = [{ type: 'ChangeWebhook', webhookId, change, by }];
      if (disabled === false) commands.push({ type: 'EnableWebhook', webhookId, by });
      if (disabled === true) {
        const at = new Date(dependencies.context.now()).toISOString();
        const why = { reason: 'asked', detail: `by ${by}`.slice(0, 256) } as const;
        commands.push({ type: 'DisableWebhook', webhookId, ...why, at });
      }
      const changed = await command(dependencies, request, ...commands);
      if (changed === null) throw new Error(`the webhook ${webhookId} was changed and is gone`);
      if (isRejection(changed)) return sendRejection(reply, changed);
      const { progress } = await dependencies.webhooks.records.load(webhookId);
      return reply.send(presentWebhook(changed, progress));
    },
  });
}

function removeWebhook(server: ApiServer, dependencies: Dependencies): void {
  server.route({
    method: 'DELETE',
    url: '/api/webhooks/:id',
    schema: {
      operationId: 'deleteWebhook',
      tags: ['Webhooks'],
      summary: 'Remove a webhook',
      description: 'A delivery that is under way may still arrive.',
      params: WebhookPath,
      response: { 204: emptyResponse('It is removed') },
    },
    config: { action: 'administer', refusals: ['WEBHOOK_NOT_FOUND'], cost },
    async handler(request, reply) {
      const { id: webhookId } = request.params;
      const by = request.caller.userId;
      const removed = await command(dependencies, request, {
        type: 'RemoveWebhook',
        webhookId,
        by,
      });
      if (removed !== null && isRejection(removed)) return sendRejection(reply, removed);
      return reply.code(204).send();
    },
  });
}

function rotateSecret(server: ApiServer, dependencies: Dependencies): void {
  server.route({
    method: 'POST',
    url: '/api/webhooks/:id/rotate-secret',
    schema: {
      operationId: 'rotateWebhookSecret',
      tags: ['Webhooks'],
      summary: 'Replace a webhook’s secret',
      description:
        'For 24 hours deliveries are signed with the old secret, too: a receiver has so long to ' +
        'change over. At most five earlier secrets sign: a further rotation ends the oldest.',
      params: WebhookPath,
      response: { 200: response('The new secret', RotatedSecret) },
    },
    config: { action: 'administer', refusals: ['WEBHOOK_NOT_FOUND'], cost },
    async handler(request, reply) {
      const { id: webhookId } = request.params;
      const now = dependencies.context.now();
      const at = new Date(now).toISOString();
      const rotated = await command(dependencies, request, {
        type: 'RotateWebhookSecret',
        webhookId,
        at,
        by: request.caller.userId,
      });
      if (rotated === null) throw new Error(`the webhook ${webhookId} was rotated and is gone`);
      if (isRejection(rotated)) return sendRejection(reply, rotated);
      return reply.send({
        id: webhookId,
        secret: dependencies.webhooks.secretOf(webhookId, rotated.generation),
        previous_valid_until: new Date(now + GRACE_MS).toISOString(),
      });
    },
  });
}
