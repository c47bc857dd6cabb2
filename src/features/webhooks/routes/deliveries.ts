import { Type } from 'typebox';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { filtersFor } from '#events/subjects.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { refuseUnknown } from '#src/kernel/event-store/unreadable.ts';
import { bodyOf } from '#src/features/webhooks/body.ts';
import { complete } from '#src/features/webhooks/complete-event.ts';
import type { AttemptRecord } from '#src/features/webhooks/webhook-records.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { emptyResponse, response, type ApiServer } from '#src/roles/api/http/route.ts';

import { limitParameter, offsetParameter } from '#src/roles/api/schemas/paging.ts';
import {
  Delivery,
  DeliveryPage,
  DeliveryPath,
  presentAttempt,
  ReplayBody,
  WebhookPath,
} from './schemas.ts';
import { command, foundOr404, type Dependencies } from './webhook-commands.ts';

/** …/deliveries and …/replay: what was sent, and sending it again. */
export function deliveries(server: ApiServer, dependencies: Dependencies): void {
  listDeliveries(server, dependencies);
  getDelivery(server, dependencies);
  replay(server, dependencies);
}

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;
const PageQuery = Type.Object(
  {
    limit: limitParameter(LIMIT_DEFAULT, LIMIT_MAX),
    offset: offsetParameter('deliveries'),
  },
  { additionalProperties: false },
);

function listDeliveries(server: ApiServer, dependencies: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/webhooks/:id/deliveries',
    schema: {
      operationId: 'listDeliveries',
      tags: ['Webhooks'],
      summary: 'List the deliveries of a webhook',
      params: WebhookPath,
      querystring: PageQuery,
      response: { 200: response('A page', DeliveryPage) },
    },
    config: { action: 'administer', refusals: ['WEBHOOK_NOT_FOUND'], cost: costs.listDeliveries },
    async handler(request, reply) {
      const found = await foundOr404(dependencies, request, reply);
      if (found === null) return reply;
      const { limit = LIMIT_DEFAULT, offset = 0 } = request.query;
      const kept = await dependencies.webhooks.records.attempts(found.webhookId);
      // A later attempt at the same event replaces the earlier one, and moves to the end.
      const last = new Map<string, AttemptRecord>();
      for (const attempt of kept) {
        const id = attempt.eventId;
        last.delete(id);
        last.set(id, attempt);
      }
      const page = [...last.values()].toReversed().slice(offset, offset + limit);
      const presented = page.map((one) => {
        const { type, sequence } = one;
        return { id: one.eventId, type, sequence, last: presentAttempt(one) };
      });
      return reply.send({ deliveries: presented, total: last.size });
    },
  });
}

function getDelivery(server: ApiServer, dependencies: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/webhooks/:id/deliveries/:delivery',
    schema: {
      operationId: 'getDelivery',
      tags: ['Webhooks'],
      summary: 'Get a delivery',
      description: 'Its kept attempts, and the body that is sent.',
      params: DeliveryPath,
      response: { 200: response('The delivery', Delivery) },
    },
    config: {
      action: 'administer',
      refusals: ['WEBHOOK_NOT_FOUND', 'DELIVERY_NOT_FOUND'],
      cost: costs.listDeliveries,
    },
    async handler(request, reply) {
      const webhook = await foundOr404(dependencies, request, reply);
      if (webhook === null) return reply;
      const { id, delivery } = request.params;
      const kept = await dependencies.webhooks.records.attempts(webhook.webhookId);
      const first = kept.find((attempt) => attempt.eventId === delivery);
      if (first === undefined) {
        const context = { webhook_id: id, delivery_id: delivery };
        return sendRejection(reply, reject('DELIVERY_NOT_FOUND', context));
      }
      const { organizationId } = request.caller;
      const body = await bodyAt(dependencies.context, organizationId, first.sequence);
      const { sequence } = first;
      // Those before the event was lost have its own id.
      const isLost = first.outcome === 'lost';
      const attempts = kept.filter((attempt) =>
        isLost ? attempt.sequence === sequence : attempt.eventId === delivery,
      );
      const type = attempts.find((attempt) => attempt.type !== '')?.type ?? '';
      return reply.send({
        id: delivery,
        type,
        sequence,
        attempts: attempts.map(presentAttempt),
        body,
      });
    },
  });
}

/** What is sent of an event; null: it cannot be read any more. @throws WrittenByNewer */
async function bodyAt(
  { eventStore }: CommandContext,
  organizationId: string,
  sequence: number,
): Promise<string | null> {
  const range = {
    subjects: filtersFor(organizationId, null),
    after: sequence - 1,
    upTo: sequence,
    includesArchive: true,
    onUnreadable: refuseUnknown,
  };
  for await (const batch of eventStore.read(range))
    for (const event of batch) return bodyOf(await complete(eventStore, event));
  return null;
}

function replay(server: ApiServer, dependencies: Dependencies): void {
  server.route({
    method: 'POST',
    url: '/api/webhooks/:id/replay',
    schema: {
      operationId: 'replayWebhook',
      tags: ['Webhooks'],
      summary: 'Send events again',
      description:
        'From a sequence on, in order; the `webhook-id` of each is the same as before. What of a ' +
        'webhook is under way is given up for it. A disabled webhook begins once it is enabled.',
      params: WebhookPath,
      body: ReplayBody,
      response: { 202: emptyResponse('It is accepted') },
    },
    config: { action: 'administer', refusals: ['WEBHOOK_NOT_FOUND'], cost: costs.exportAudit },
    async handler(request, reply) {
      const { id: webhookId } = request.params;
      const { from } = request.body;
      const end = await dependencies.context.eventStore.lastSequence();
      if (from > end)
        return sendRejection(
          reply,
          reject(
            'INVALID_REQUEST',
            { field: 'from', from },
            { message: 'The event log has not reached this position.' },
          ),
        );
      const by = request.caller.userId;
      const asked = await command(dependencies, request, {
        type: 'ReplayWebhook',
        webhookId,
        from,
        by,
      });
      if (asked !== null && isRejection(asked)) return sendRejection(reply, asked);
      return reply.code(202).send();
    },
  });
}
