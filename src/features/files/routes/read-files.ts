import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { fileKey, inOrder, type SessionFile } from '#src/kernel/domain/session/files.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import {
  askedRange,
  asAttachment,
  isKnown,
  type AskedRange,
} from '#src/roles/api/files/byte-range.ts';
import { findFiles, type Found } from '#src/roles/api/files/session-files.ts';
import { sendPaced } from '#src/roles/api/files/paced-body.ts';
import { zipOf } from '#src/roles/api/files/zip.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import { emptyResponse, response, type ApiServer } from '#src/roles/api/http/route.ts';
import { FilePath, presentFile, SessionFileList } from './schemas.ts';
import { SessionPath } from '#src/roles/api/schemas/requests.ts';

const HEADERS = {
  ETag: Type.String({ description: '`"<sha256>"`: for `If-None-Match` and `If-Range`' }),
  'Accept-Ranges': Type.String({ description: '`bytes`: `Range` takes one range' }),
  'Content-Disposition': Type.String({ description: '`attachment` with the name' }),
};
const Content = Type.String({ contentMediaType: 'application/octet-stream' });
const part = (description: string) =>
  response(description, Content, { contentType: 'application/octet-stream', headers: HEADERS });

/** The reads of a session's files, while it is active and until `FILES_RETAIN` after its end. */
export function sessionFiles(server: ApiServer, dependencies: ApiDependencies): void {
  listFiles(server, dependencies);
  readFile(server, dependencies);
  zipFiles(server, dependencies);
}

function listFiles(server: ApiServer, dependencies: ApiDependencies): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/files',
    schema: {
      operationId: 'listSessionFiles',
      tags: ['Files'],
      summary: 'The files of a session',
      description:
        'What its browser downloaded and what was uploaded, in the order in which it came. Files ' +
        'are kept for a while after the end of the session (`FILES_RETAIN`); then there are none.',
      params: SessionPath,
      response: { 200: response('At most 1,000', SessionFileList) },
    },
    config: { action: 'read', refusals: ['SESSION_NOT_FOUND'], cost: costs.listFiles },
    async handler(request, reply) {
      const { id } = request.params;
      const found = await findFiles(dependencies, request.caller.organizationId, id);
      if (found === null) return sendRejection(reply, noSession(id));
      return reply.send({ files: inOrder(found.files).map(presentFile) });
    },
  });
}

function readFile(server: ApiServer, dependencies: ApiDependencies): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/files/:name',
    schema: {
      operationId: 'getSessionFile',
      tags: ['Files'],
      summary: 'One file of a session',
      description:
        'Its bytes. A download that broke off goes on with `Range`, and with `If-Range` only if ' +
        'the file is the same. A client may take 120 s, and a second more for each 64 KiB; a ' +
        'slower one is cut off.',
      params: FilePath,
      response: {
        200: part('The file'),
        206: part('The bytes of `Range`; `Content-Range` says which'),
        304: emptyResponse('The client has it: `If-None-Match` names its `ETag`'),
      },
    },
    config: {
      action: 'read',
      refusals: [
        'SESSION_NOT_FOUND',
        'FILE_NOT_FOUND',
        'RANGE_NOT_SATISFIABLE',
        'TRANSFER_LIMIT_EXCEEDED',
      ],
      cost: costs.readFile,
    },
    async handler(request, reply) {
      const { id, name: given } = request.params;
      const { organizationId } = request.caller;
      const name = given.toWellFormed().normalize('NFC');
      // A file that is replaced between the two reads is read again.
      for (let attempt = 1; ; attempt += 1) {
        const found = await findFiles(dependencies, organizationId, id);
        const file = found?.files.get(name);
        if (found === null) return sendRejection(reply, noSession(id));
        if (file === undefined) return sendRejection(reply, noFile(id, name));
        const etag = `"${file.sha256}"`;
        void reply.headers({
          etag,
          'accept-ranges': 'bytes',
          'cache-control': 'private, no-cache',
        });
        if (isKnown(etag, request.headers['if-none-match'])) return reply.code(304).send();
        const range = askedRange(file.bytes, etag, request.headers);
        if (range.kind === 'unsatisfiable') return unsatisfiable(reply, file);
        if (request.method === 'HEAD' || file.bytes === 0)
          return describeFile(reply, file, range).send(Readable.from([], { objectMode: false }));
        const place = await dependencies.transfers.begin('download', organizationId);
        if (isRejection(place)) return sendRejection(reply, place);
        const body = await bodyOf(dependencies, found, file, range).catch((error: unknown) => {
          place[Symbol.dispose]();
          throw error;
        });
        if (body !== null) return sendPaced(describeFile(reply, file, range), body, place);
        place[Symbol.dispose]();
        if (attempt === 2) return sendRejection(reply, noFile(id, name));
      }
    },
  });
}

/** Null: the object store does not have it (any more). */
async function bodyOf(
  { objects }: ApiDependencies,
  { state }: Found,
  file: SessionFile,
  range: AskedRange,
): Promise<AsyncIterable<Uint8Array> | null> {
  const asked = range.kind === 'part' ? range : undefined;
  const found = await objects.get(fileKey(state, file.fileId), asked);
  return found && found.body;
}

/** The answer's status and headers. */
function describeFile(reply: FastifyReply, file: SessionFile, range: AskedRange): FastifyReply {
  const { bytes, name } = file;
  const isPart = range.kind === 'part';
  if (isPart) {
    void reply.code(206);
    void reply.header('content-range', `bytes ${range.start}-${range.end}/${bytes}`);
  }
  return reply.headers({
    'content-type': 'application/octet-stream',
    'content-length': isPart ? range.end - range.start + 1 : bytes,
    ...downloadHeaders(name),
  });
}

/** No browser shows a file as a page of the API's origin. */
function downloadHeaders(name: string): Record<string, string> {
  return {
    'content-disposition': asAttachment(name),
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  };
}

function unsatisfiable(reply: FastifyReply, { name, bytes }: SessionFile) {
  void reply.header('content-range', `bytes */${bytes}`);
  return sendRejection(reply, reject('RANGE_NOT_SATISFIABLE', { name, bytes }));
}

function zipFiles(server: ApiServer, dependencies: ApiDependencies): void {
  server.route({
    method: 'GET',
    url: '/api/sessions/:id/files.zip',
    schema: {
      operationId: 'getSessionFilesZip',
      tags: ['Files'],
      summary: 'All files of a session',
      description: 'A zip, made while it is read. An empty one where there is no file.',
      params: SessionPath,
      response: {
        200: response('The zip', Type.String({ contentMediaType: 'application/zip' }), {
          contentType: 'application/zip',
        }),
      },
    },
    config: {
      action: 'read',
      refusals: ['SESSION_NOT_FOUND', 'TRANSFER_LIMIT_EXCEEDED'],
      cost: costs.zipFiles,
    },
    async handler(request, reply) {
      const { id } = request.params;
      const found = await findFiles(dependencies, request.caller.organizationId, id);
      if (found === null) return sendRejection(reply, noSession(id));
      void reply.headers({
        'content-type': 'application/zip',
        'cache-control': 'private, no-store',
        ...downloadHeaders(`${id}.zip`),
      });
      if (request.method === 'HEAD') return reply.send(Readable.from([]));
      const place = await dependencies.transfers.begin('download', request.caller.organizationId);
      if (isRejection(place)) return sendRejection(reply, place);
      const zip = zipOf(dependencies.objects, found.state, inOrder(found.files));
      const { bytes, body } = await zip.catch((error: unknown) => {
        place[Symbol.dispose]();
        throw error;
      });
      void reply.header('content-length', bytes);
      return sendPaced(reply, body, place);
    },
  });
}

function noSession(id: string): Rejection {
  return reject('SESSION_NOT_FOUND', { session_id: id });
}

function noFile(id: string, name: string): Rejection {
  return reject('FILE_NOT_FOUND', { session_id: id, name });
}
