import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { inOrder, type SessionFile } from '#src/kernel/domain/session/files.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import { isRecord } from '#src/kernel/http/webdriver-capabilities.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import { sendPaced } from '#src/roles/api/files/paced-body.ts';
import {
  activeSession,
  askServer,
  findFiles,
  refusalOf,
} from '#src/roles/api/files/session-files.ts';
import { zipOf } from '#src/roles/api/files/zip.ts';
import { takeAnyBody } from '#src/roles/api/http/any-body.ts';
import { readText } from '#src/roles/api/http/body-coding.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import type { ApiServer } from '#src/roles/api/http/route.ts';
import { base64Length, base64Of } from '../base64-stream.ts';
import { parseWebDriverId } from '../session-id.ts';

const URL = '/wd/hub/session/:id/se/files';
const params = Type.Object({ id: Type.String() });
const schema = { hide: true, querystring: Type.Object({}), params } as const;
const config = { action: 'control', refusals: [] } as const;

/** What the browser has downloaded, as Selenium's clients ask a Grid for it. */
export function downloads(server: ApiServer, dependencies: ApiDependencies): void {
  server.register(async (plain) => {
    takeAnyBody(plain, 'buffer');
    const scope: ApiServer = plain.withTypeProvider();
    scope.route({
      method: 'GET',
      url: URL,
      exposeHeadRoute: false,
      schema,
      config: { ...config, cost: costs.listFiles },
      async handler(request, reply) {
        const found = await find(dependencies, request);
        if (isRejection(found)) return sendRejection(reply, found);
        const files = found.files.map(({ name, bytes: size, createdAt }) => {
          const at = Date.parse(createdAt);
          return { name, creationTime: at, lastModifiedTime: at, size };
        });
        return reply.send({ value: { names: files.map(({ name }) => name), files } });
      },
    });
    scope.route({
      method: 'POST',
      url: URL,
      schema,
      config: { ...config, cost: costs.readFile },
      async handler(request, reply) {
        const found = await find(dependencies, request);
        if (isRejection(found)) return sendRejection(reply, found);
        const name = nameIn(request.body);
        const file = found.files.find((known) => known.name === name);
        if (file !== undefined) return sendZip(dependencies, found.session, file, reply);
        return sendRejection(
          reply,
          reject('FILE_NOT_FOUND', { session_id: found.session.id, name }),
        );
      },
    });
    scope.route({
      method: 'DELETE',
      url: URL,
      schema,
      config: { ...config, cost: costs.zipFiles },
      async handler(request, reply) {
        const found = await find(dependencies, request);
        if (isRejection(found)) return sendRejection(reply, found);
        for (const { name } of found.files) {
          const answer = await askServer(dependencies, found.session, { ask: 'remove', name });
          if (answer.kind === 'removed' || answer.kind === 'no-file') continue;
          return sendRejection(reply, await refusalOf(dependencies, found.session, name, answer));
        }
        return reply.send({ value: null });
      },
    });
  });
}

type Session = Exclude<Awaited<ReturnType<typeof activeSession>>, Rejection>;
type Found = { session: Session; files: SessionFile[] };

/** The session and its downloads, or why there are none. */
async function find(
  dependencies: ApiDependencies,
  request: FastifyRequest,
): Promise<Found | Rejection> {
  const { id } = request.params as { id: string };
  const { organizationId } = request.caller;
  const { sessionId } = parseWebDriverId(id) ?? { sessionId: id };
  const session = await activeSession(dependencies, organizationId, sessionId);
  if (isRejection(session)) return session;
  const found = await findFiles(dependencies, organizationId, sessionId);
  const files = inOrder(found?.files ?? new Map());
  return { session, files: files.filter(({ origin }) => origin === 'download') };
}

/** The body of a request for a file; a name has 255 bytes. */
const NAME_BYTES_MAX = 64 * 1024;

/** Null: the body names none. */
function nameIn(body: unknown): string | null {
  try {
    const text = readText(body as Buffer, undefined);
    const asked = parseForeignJson(text, { bytesMax: NAME_BYTES_MAX });
    return isRecord(asked) && typeof asked['name'] === 'string' ? asked['name'] : null;
  } catch {
    return null;
  }
}

/** A zip of the file in base64, as Grids answer it; made while it is read. */
async function sendZip(
  { objects, transfers }: ApiDependencies,
  session: Session,
  file: SessionFile,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const place = await transfers.begin('download', session.organizationId);
  if (isRejection(place)) return sendRejection(reply, place);
  const { bytes, body } = await zipOf(objects, session, [file]).catch((error: unknown) => {
    place[Symbol.dispose]();
    throw error;
  });
  const [before, after] = [`{"value":{"filename":${JSON.stringify(file.name)},"contents":"`, '"}}'];
  async function* answer() {
    yield Buffer.from(before);
    for await (const piece of base64Of(body)) yield Buffer.from(piece);
    yield Buffer.from(after);
  }
  const length = Buffer.byteLength(before) + base64Length(bytes) + after.length;
  void reply.headers({
    'content-type': 'application/json; charset=utf-8',
    'content-length': length,
  });
  return sendPaced(reply, answer(), place);
}
