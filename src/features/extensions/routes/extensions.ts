import { isRejection, reject } from '#src/kernel/errors.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { requestMetadata, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { emptyResponse, response, type ApiServer } from '#src/roles/api/http/route.ts';
import { Extension, ExtensionList, ExtensionPath, presentExtension } from './schemas.ts';

type Dependencies = Pick<ApiDependencies, 'context'>;

/** GET /api/extensions, GET and DELETE /api/extensions/{id}: from the event store. */
export function extensions(server: ApiServer, dependencies: Dependencies): void {
  listExtensions(server, dependencies);
  getExtension(server, dependencies);
  removeExtension(server, dependencies);
}

function listExtensions(server: ApiServer, { context }: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/extensions',
    schema: {
      operationId: 'listExtensions',
      tags: ['Extensions'],
      summary: "List the organization's extensions",
      response: { 200: response('At most 50, oldest first', ExtensionList) },
    },
    config: { action: 'read', refusals: [] },
    async handler({ caller }, reply) {
      const found = await extensionsOf(context, caller.organizationId);
      return reply.send({ extensions: found.map(presentExtension) });
    },
  });
}

function getExtension(server: ApiServer, { context }: Dependencies): void {
  server.route({
    method: 'GET',
    url: '/api/extensions/:id',
    schema: {
      operationId: 'getExtension',
      tags: ['Extensions'],
      summary: 'Get an extension',
      description: 'What is known of it, not its files.',
      params: ExtensionPath,
      response: { 200: response('The extension', Extension) },
    },
    config: { action: 'read', refusals: ['EXTENSION_NOT_FOUND'] },
    async handler({ params: { id }, caller }, reply) {
      const all = await extensionsOf(context, caller.organizationId);
      const found = all.find(({ extensionId }) => extensionId === id);
      return found === undefined
        ? sendRejection(reply, reject('EXTENSION_NOT_FOUND', { extension_id: id }))
        : reply.send(presentExtension(found));
    },
  });
}

function removeExtension(server: ApiServer, { context }: Dependencies): void {
  server.route({
    method: 'DELETE',
    url: '/api/extensions/:id',
    schema: {
      operationId: 'deleteExtension',
      tags: ['Extensions'],
      summary: 'Remove an extension',
      description: 'No other session gets it. Sessions that were accepted with it keep it.',
      params: ExtensionPath,
      response: { 204: emptyResponse('It is removed') },
    },
    config: { action: 'control', refusals: ['EXTENSION_NOT_FOUND'], cost: costs.changeKey },
    async handler(request, reply) {
      const { caller } = request;
      const { organizationId, userId: by } = caller;
      const { id: extensionId } = request.params;
      const removed = await handleCommand<'organization'>(
        context,
        { kind: 'organization', organizationId },
        (organization) =>
          decideOrganization({ type: 'RemoveExtension', extensionId, by }, organization),
        requestMetadata(request, caller),
      );
      if (isRejection(removed)) return sendRejection(reply, removed);
      // Its zip stays for an hour, for sessions that wait, and is removed by the archivist.
      return reply.code(204).send();
    },
  });
}

/** From the leader: one that was uploaded by another process a moment ago is there. */
async function extensionsOf(context: Dependencies['context'], organizationId: string) {
  const organization = { kind: 'organization', organizationId } as const;
  const fresh = { fromLeader: true };
  const { state } = await loadState<'organization'>(context.eventStore, organization, fresh);
  return state?.extensions ?? [];
}
