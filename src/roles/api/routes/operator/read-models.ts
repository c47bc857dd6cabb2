import { Type } from 'typebox';
import { allProjections } from '#projections/all-projections.ts';
import { rebuild } from '#projections/maintenance/rebuild.ts';
import { projectionId } from '#projections/projection.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { reject } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { refuseUnknown } from '#src/kernel/event-store/unreadable.ts';
import { readReadModels, type ReadModel } from '#src/commands/operator/read-models.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { createBackgroundTask, type TaskStatus } from '../../operator/background-task.ts';
import { ReadModels, Rebuild } from '../../schemas/operator.ts';

const NamePath = Type.Object({ name: Type.String({ description: 'without its version' }) });
const OTHER = 'Another process is rebuilding it.';

/** GET /api/operator/read-models, POST …/{name}/rebuild. */
export function operatorReadModels(
  server: ApiServer,
  dependencies: Pick<ApiDependencies, 'context' | 'operator'>,
): void {
  const task = createBackgroundTask<null>(() => dependencies.context.now());
  const ending = new AbortController();
  server.addHook('onClose', () => ending.abort(new Error('this process ends')));

  server.route({
    method: 'GET',
    url: '/api/operator/read-models',
    schema: {
      operationId: 'listReadModels',
      tags: ['Operator'],
      summary: 'The read models, how far they are, and the last rebuild',
      response: { 200: response('All of them', ReadModels) },
    },
    config: { action: 'operator', refusals: [] },
    async handler(_, reply) {
      const { context, operator } = dependencies;
      const head = await context.eventStore.lastSequence();
      const models = await readReadModels(operator.stores, head);
      const read_models = await Promise.all(
        models.map(async (model) => present(model, head, await lagMs(context, model))),
      );
      const last = task.last();
      const rebuilt = last === null ? null : presentTask(last.name, last.status);
      return reply.send({ read_models, rebuild: rebuilt });
    },
  });
  server.route({
    method: 'POST',
    url: '/api/operator/read-models/:name/rebuild',
    schema: {
      operationId: 'rebuildReadModel',
      tags: ['Operator'],
      summary: 'Fold a read model anew, beside the one in use',
      description: 'It runs on; `GET /api/operator/read-models` has its progress. One at a time.',
      params: NamePath,
      response: { 202: response('It has begun', Rebuild) },
    },
    config: { action: 'operator', refusals: ['NOT_FOUND', 'UNAVAILABLE'] },
    handler(request, reply) {
      const { name } = request.params;
      const projection = allProjections.find((one) => one.name === name);
      if (projection === undefined) return sendRejection(reply, reject('NOT_FOUND', { name }));
      const { context, operator } = dependencies;
      const work: Parameters<typeof task.start>[1] = async (report, signal) => {
        const rebuilt = await rebuild({
          projection,
          eventStore: context.eventStore,
          views: operator.stores,
          deadLetters: operator.deadLetters,
          signal,
          onProgress: ({ checkpoint, target }) => report(checkpoint, target),
        });
        if (rebuilt === null) throw new Error(OTHER);
        return null;
      };
      const last = task.start(name, work, ending.signal) ? task.last() : null;
      if (last !== null) return reply.code(202).send(presentTask(last.name, last.status));
      const message = 'A read model is being rebuilt; try again when that has ended.';
      const more = { message, retryAfterSeconds: 5 };
      return sendRejection(reply, reject('UNAVAILABLE', { part: 'read-model' }, more));
    },
  });
}

/** The age of the oldest event that the read model lacks; null: another version's. */
async function lagMs(
  { eventStore, now }: CommandContext,
  { projection, checkpoint, behind }: ReadModel,
): Promise<number | null> {
  if (behind === null) return null;
  const own = allProjections.find((one) => projectionId(one) === projection);
  if (behind === 0 || own === undefined) return 0;
  const oldest = await firstAfter(eventStore, own.subjects, checkpoint);
  return oldest === null ? 0 : Math.max(0, now() - Date.parse(oldest));
}

async function firstAfter(
  eventStore: EventStore,
  subjects: readonly string[],
  after: number,
): Promise<string | null> {
  const range = { subjects, after, batchMax: 1, onUnreadable: refuseUnknown };
  for await (const [event] of eventStore.read(range)) return event?.time ?? null;
  return null;
}

function present(model: ReadModel, head: number, lag_ms: number | null) {
  const [, name = model.projection, version = '0'] = /^(.+):v(\d+)$/.exec(model.projection) ?? [];
  const { checkpoint, views, behind, state } = model;
  return {
    name,
    version: Number(version),
    views,
    checkpoint,
    head,
    lag_events: behind,
    lag_ms,
    status: state,
  };
}

function presentTask(
  name: string,
  { state, startedAt, endedAt, progress, failure }: TaskStatus<null>,
) {
  return { name, state, started_at: startedAt, ended_at: endedAt, progress, failure };
}
