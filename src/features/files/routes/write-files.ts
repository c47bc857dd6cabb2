import type { Readable } from 'node:stream';
import { isRejection } from '#src/kernel/errors.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import { activeSession, askServer, nameOf, refusalOf } from '#src/roles/api/files/session-files.ts';
import { takeUpload } from './upload.ts';
import { takeAnyBody } from '#src/roles/api/http/any-body.ts';
import { codingOf } from '#src/roles/api/http/body-coding.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { allowSlowBody } from '#src/roles/api/http/malformed-requests.ts';
import { emptyResponse, response, type ApiServer } from '#src/roles/api/http/route.ts';
import { FilePath, presentFile, UploadedFile } from './schemas.ts';

/** Uploads to, and removals from, the folder of an active session. */
export function writeFiles(server: ApiServer, dependencies: ApiDependencies): void {
  // A scope of its own: here a body of any type is passed on as it arrives.
  server.register(async (scope) => {
    takeAnyBody(scope, 'stream');
    uploadFile(scope.withTypeProvider(), dependencies);
  });
  removeFile(server, dependencies);
}

const refusals = [
  'INVALID_FILE_NAME',
  'SESSION_NOT_FOUND',
  'SESSION_NOT_READY',
  'SESSION_ENDED',
  'BROWSER_UNREACHABLE',
] as const;

function uploadFile(server: ApiServer, dependencies: ApiDependencies): void {
  server.route({
    method: 'PUT',
    url: '/api/sessions/:id/files/:name',
    schema: {
      operationId: 'putSessionFile',
      tags: ['Files'],
      summary: 'Put a file into a session’s folder',
      description:
        'The body is the file, as it is; its type does not matter, and its length need not be ' +
        'sent. What comes in a `Content-Encoding` is decoded. The answer has the path by which ' +
        'the browser opens it: for `DOM.setFileInputFiles`, or Playwright’s `setInputFiles`. ' +
        'It replaces a file of the same name once it is there as a whole. It may take 120 s, and ' +
        'a second more for each 64 KiB; one that is slower, or silent for 30 s, is ' +
        'FILE_INCOMPLETE.',
      params: FilePath,
      response: {
        200: response('It has replaced one of the same name', UploadedFile),
        201: response('It is there', UploadedFile),
      },
    },
    config: {
      action: 'control',
      refusals: [
        ...refusals,
        'FILE_INCOMPLETE',
        'FILE_TOO_LARGE',
        'FILES_QUOTA_EXCEEDED',
        'TRANSFER_LIMIT_EXCEEDED',
        'STORAGE_LIMIT_EXCEEDED',
      ],
      cost: costs.writeFile,
    },
    async handler(request, reply) {
      const { id, name: given } = request.params;
      allowSlowBody(request.raw);
      const length = request.headers['content-length'];
      const isSized =
        request.headers['transfer-encoding'] === undefined && codingOf(request) === null;
      const bytes = isSized ? Number(length ?? 0) : null;
      // What of the body is not read is not read to its end either.
      const refuse = (rejection: Parameters<typeof sendRejection>[1]) =>
        sendRejection(bytes === 0 ? reply : reply.header('connection', 'close'), rejection);
      const name = nameOf(given);
      if (typeof name !== 'string') return refuse(name);
      const session = await activeSession(dependencies, request.caller.organizationId, id);
      if (isRejection(session)) return refuse(session);
      const body = (request.body ?? request.raw) as Readable;
      const taken = await takeUpload(dependencies, session, name, body, bytes);
      if (isRejection(taken)) return refuse(taken);
      const { file, path, isNew } = taken;
      return reply.code(isNew ? 201 : 200).send({ ...presentFile(file), path });
    },
  });
}

function removeFile(server: ApiServer, dependencies: ApiDependencies): void {
  server.route({
    method: 'DELETE',
    url: '/api/sessions/:id/files/:name',
    schema: {
      operationId: 'deleteSessionFile',
      tags: ['Files'],
      summary: 'Remove a file of a session',
      description: 'While the session is active: from its folder, and from what is kept.',
      params: FilePath,
      response: { 204: emptyResponse('It is removed') },
    },
    config: { action: 'control', refusals: [...refusals, 'FILE_NOT_FOUND'], cost: costs.writeFile },
    async handler(request, reply) {
      const { id, name: given } = request.params;
      const name = nameOf(given);
      if (typeof name !== 'string') return sendRejection(reply, name);
      const session = await activeSession(dependencies, request.caller.organizationId, id);
      if (isRejection(session)) return sendRejection(reply, session);
      const answer = await askServer(dependencies, session, { ask: 'remove', name });
      if (answer.kind === 'removed') return reply.code(204).send();
      return sendRejection(reply, await refusalOf(dependencies, session, name, answer));
    },
  });
}
