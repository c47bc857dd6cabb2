import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { refuseExtension } from '#src/kernel/domain/organization/extensions.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createExtensionReader } from '#src/browsers/extensions/extension-reader.ts';
import { extensionKey, UPLOAD_BYTES_MAX } from '#src/browsers/extensions/read-extension.ts';
import { requestMetadata, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { createGrowing } from '#src/kernel/foreign/growing.ts';
import { arriving, TooSlow } from '#src/roles/api/files/paced-body.ts';
import { takeAnyBody } from '#src/roles/api/http/any-body.ts';
import { Unreadable } from '#src/roles/api/http/body-coding.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { allowSlowBody } from '#src/roles/api/http/malformed-requests.ts';
import { response, type ApiServer } from '#src/roles/api/http/route.ts';
import { Extension, presentExtension } from './schemas.ts';

type Dependencies = Pick<ApiDependencies, 'context' | 'objects' | 'log' | 'transfers'>;

/** POST /api/extensions: a zip or a CRX, read as a whole before anything is stored. */
export function uploadExtension(server: ApiServer, dependencies: Dependencies): void {
  // A scope of its own: here a body of any type is read by the route.
  server.register(async (scope) => {
    takeAnyBody(scope, 'stream');
    addRoute(scope.withTypeProvider(), dependencies);
  });
}

/** All of it, or why it is not taken. */
async function uploadOf({ raw, body }: FastifyRequest): Promise<Buffer | Rejection> {
  allowSlowBody(raw);
  if (Number(raw.headers['content-length'] ?? 0) > UPLOAD_BYTES_MAX)
    return reject('PAYLOAD_TOO_LARGE');
  const kept = createGrowing(UPLOAD_BYTES_MAX);
  let bytes = 0;
  try {
    for await (const piece of arriving((body ?? raw) as Readable)) {
      bytes += piece.length;
      if (bytes > UPLOAD_BYTES_MAX) return reject('PAYLOAD_TOO_LARGE');
      kept.add(piece);
    }
  } catch (error) {
    if (error instanceof Unreadable) return error.rejection;
    const why = error instanceof TooSlow ? { message: error.message } : {};
    return reject('FILE_INCOMPLETE', { bytes_received: bytes }, why);
  }
  return kept.all();
}

/** What of the body was not read is not read to its end either. */
function refuse(reply: FastifyReply, rejection: Rejection): FastifyReply {
  if (!reply.request.raw.complete) void reply.header('connection', 'close');
  return sendRejection(reply, rejection);
}

function addRoute(server: ApiServer, { context, objects, log, transfers }: Dependencies): void {
  const reader = createExtensionReader((err) =>
    log.warn({ err }, 'an extension could not be read'),
  );
  server.route({
    method: 'POST',
    url: '/api/extensions',
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
      refusals: [
        'INVALID_EXTENSION',
        'FILE_INCOMPLETE',
        'EXTENSION_LIMIT_EXCEEDED',
        'STORAGE_LIMIT_EXCEEDED',
        'TRANSFER_LIMIT_EXCEEDED',
      ],
      cost: costs.uploadExtension,
    },
    async handler(request, reply) {
      const { caller } = request;
      const { organizationId } = caller;
      const taken = await transfers.begin('extension', organizationId);
      if (isRejection(taken)) return refuse(reply, taken);
      using _ = taken;
      const upload = await uploadOf(request);
      if (isRejection(upload)) return refuse(reply, upload);
      const read = await reader.read(organizationId, upload);
      if (isRejection(read)) return sendRejection(reply, read);
      const { zip, ...facts } = read;
      const uploadedAt = new Date(context.now()).toISOString();
      const extension = { ...facts, bytes: zip.length, uploadedAt, by: caller.userId };
      const refusal = await refusalOf(context, organizationId, extension.extensionId);
      if (refusal !== null) return sendRejection(reply, refusal);
      // First: an extension that the organization has is always there.
      const key = extensionKey(organizationId, extension.extensionId);
      await objects.put(key, once(zip), { bytes: zip.length });
      const added = await handleCommand<'organization'>(
        context,
        { kind: 'organization', organizationId },
        (organization) => decideOrganization({ type: 'AddExtension', extension }, organization),
        requestMetadata(request, caller),
      );
      if (isRejection(added)) {
        // The last place was taken meanwhile, by another extension or by the same one.
        if ((await refusalOf(context, organizationId, extension.extensionId)) !== null)
          await objects.remove(key);
        return sendRejection(reply, added);
      }
      const stored = added.state.extensions?.find(
        ({ extensionId }) => extensionId === extension.extensionId,
      );
      return reply.code(added.isChanged ? 201 : 200).send(presentExtension(stored ?? extension));
    },
  });
}

/** From the leader: the limit is known before a byte is stored. */
async function refusalOf(
  { eventStore }: Dependencies['context'],
  organizationId: string,
  extensionId: string,
): Promise<Rejection | null> {
  const organization = { kind: 'organization', organizationId } as const;
  const { state } = await loadState<'organization'>(eventStore, organization, { fromLeader: true });
  return state && refuseExtension(state, extensionId);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield bytes;
}
