import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRejection } from '#src/errors.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { decideOrganization } from '#src/domain/organization/organization.ts';
import { createExtensionReader } from '#src/extensions/extension-reader.ts';
import { extensionKey, UPLOAD_BYTES_MAX } from '#src/extensions/read-extension.ts';
import { requestMetadata, type ApiDependencies } from '../../dependencies.ts';
import { costs } from '../../http/cost.ts';
import { sendRejection } from '../../http/error-response.ts';
import { allowSlowBody } from '../../http/malformed-requests.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { Extension, presentExtension } from '../../schemas/extensions.ts';

type Dependencies = Pick<ApiDependencies, 'context' | 'objects' | 'log'>;

/** POST /api/extensions: a zip or a CRX, read as a whole before anything is stored. */
export function uploadExtension(server: ApiServer, dependencies: Dependencies): void {
  // A scope of its own: here a body of any type is bytes.
  server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) =>
      done(null, body),
    );
    addRoute(scope.withTypeProvider(), dependencies);
  });
}

/** The longest time for an upload to arrive: 20 MB at 1.3 Mbit/s. */
export const BODY_MS = 120_000;

function giveTime({ raw }: FastifyRequest, reply: FastifyReply, done: () => void): void {
  allowSlowBody(raw);
  const late = setTimeout(() => raw.destroy(), BODY_MS);
  reply.raw.once('close', () => clearTimeout(late));
  done();
}

function addRoute(server: ApiServer, { context, objects, log }: Dependencies): void {
  const reader = createExtensionReader((err) =>
    log.warn({ err }, 'an extension could not be read'),
  );
  server.route({
    method: 'POST',
    url: '/api/extensions',
    bodyLimit: UPLOAD_BYTES_MAX,
    onRequest: giveTime,
    schema: {
      operationId: 'uploadExtension',
      tags: ['Extensions'],
      summary: 'Upload a browser extension',
      description:
        'The body is a zip with `manifest.json` at its root, of `manifest_version` 3, or a CRX: ' +
        'at most 20 MB, 100 MB unpacked, 5,000 files, 256 KiB of `manifest.json` and of each ' +
        '`messages.json`. Sessions of the organization have it by ' +
        'its id (`extensions` at create). The same bytes have the same id: a repeat answers 200.',
      response: {
        200: response('The organization has it already', Extension),
        201: response('It is stored', Extension),
      },
    },
    config: {
      action: 'control',
      refusals: ['INVALID_EXTENSION', 'EXTENSION_LIMIT_EXCEEDED'],
      cost: costs.uploadExtension,
    },
    async handler(request, reply) {
      const { caller } = request;
      const { organizationId } = caller;
      const body: unknown = request.body;
      const upload = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
      const read = await reader.read(organizationId, upload);
      if (isRejection(read)) return sendRejection(reply, read);
      const { zip, ...facts } = read;
      const uploadedAt = new Date(context.now()).toISOString();
      const extension = { ...facts, bytes: zip.length, uploadedAt, by: caller.userId };
      // First: an extension that the organization has is always there.
      await objects.put(
        extensionKey(organizationId, extension.extensionId),
        (async function* () {
          yield zip;
        })(),
      );
      const added = await handleCommand<'organization'>(
        context,
        { kind: 'organization', organizationId },
        (organization) => decideOrganization({ type: 'AddExtension', extension }, organization),
        requestMetadata(request, caller),
      );
      if (isRejection(added)) return sendRejection(reply, added);
      const stored = added.state.extensions?.find(
        ({ extensionId }) => extensionId === extension.extensionId,
      );
      return reply.code(added.isChanged ? 201 : 200).send(presentExtension(stored ?? extension));
    },
  });
}
