import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { isId } from '#events/subjects.ts';
import { mayDo } from '#src/kernel/domain/organization/roles.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { newId } from '#src/kernel/ids.ts';
import { readOwnedSessions, stopOwnedSession } from '#src/commands/mcp-sessions.ts';
import type { McpSession, McpSessions } from '#src/kernel/messaging/mcp-sessions.ts';
import { bearerOf, type Caller } from '#src/roles/api/auth/authenticate.ts';
import { requestMetadata, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { openSink } from '#src/roles/api/event-stream/event-sink.ts';
import { answerHeaders } from '#src/roles/api/http/admission.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { clientText } from '#src/roles/api/http/door.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import type { ApiServer } from '#src/roles/api/http/route.ts';
import { invalid } from '#src/roles/api/http/validation.ts';
import { callTool } from './call-tool.ts';
import { followClients, STREAMS_MAX, type McpClients } from './clients.ts';
import { refuseForeignPage } from './origin.ts';
import { createSessionPlaces, type SessionPlaces } from './session-places.ts';

const PATH = '/mcp';
const SESSION_HEADER = 'mcp-session-id';
/** A comment so often keeps proxies from ending an idle stream, and finds a client that is gone. */
const COMMENT_EVERY_MS = 15_000;
const COMMENT = Buffer.from(': here\n\n');
const RETRY_AFTER_SECONDS = 10;
/**
 * Clients made with the SDK open a stream that has ended again two times, by default 1 s and 3 s
 * after its end, and then never. After a cut the two tries lie within the grace; after the end of
 * an API process at two and four graces, so that the service has the time to start again.
 */
const RESTART_GRACES = 2;
// With a blank line, as the protocol has it: Python's SDK takes a retry from a message alone.
const retryAfter = (ms: number) => Buffer.from(`retry: ${Math.round(ms)}\n\n`);
const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // No transformation, and no buffering by a proxy.
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};

/** The MCP sessions of all processes, and how long one's client may be away. */
export type McpParts = { sessions: McpSessions; graceMs: number };

type Dependencies = Pick<
  ApiDependencies,
  'context' | 'views' | 'addresses' | 'ownHosts' | 'authenticate' | 'log'
> & { mcp: McpParts };
type Parts = Dependencies & { clients: McpClients; places: SessionPlaces; server: ApiServer };

/**
 * The MCP server: POST has a message of the client, GET is its stream, DELETE ends its session and
 * the browser sessions that were made in it. Not in the OpenAPI document: the protocol describes
 * itself.
 */
export function serveMcp(server: ApiServer, dependencies: Dependencies): void {
  let following: McpClients | null = null;
  let places: SessionPlaces | null = null;
  const parts: Parts = {
    ...dependencies,
    server,
    // Made with the first client: the document is also made of routes without dependencies.
    get clients() {
      return (following ??= followClients(dependencies.mcp, dependencies.log));
    },
    get places() {
      return (places ??= createSessionPlaces(dependencies.mcp.sessions));
    },
  };
  // Before connections are waited for: its streams would hold the server up.
  server.addHook('preClose', async () => following?.[Symbol.asyncDispose]());
  const config = { action: 'read', refusals: [] } as const;
  const shared = { url: PATH, config, preHandler: refuseForeign };
  server.route({
    ...shared,
    config: { ...config, cost: costs.mcpMessage },
    method: 'POST',
    schema: { hide: true, body: Type.Unknown() },
    handler: (request, reply) => answerPost(parts, request, reply),
  });
  server.route({
    ...shared,
    method: 'GET',
    exposeHeadRoute: false,
    schema: { hide: true },
    handler: (request, reply) => openStream(parts, request, reply),
  });
  server.route({
    ...shared,
    method: 'DELETE',
    schema: { hide: true },
    handler: (request, reply) => endSession(parts, request, reply),
  });

  function refuseForeign(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const refusal = refuseForeignPage(request.headers.origin, dependencies.ownHosts);
    if (refusal === null) done();
    else sendRejection(reply, refusal);
  }
}

/** A message of JSON-RPC, as far as it matters here. */
type Message = {
  method?: unknown;
  params?: { clientInfo?: { name?: unknown; version?: unknown } };
};

async function answerPost(parts: Parts, request: FastifyRequest, reply: FastifyReply) {
  const { body } = request;
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return sendRejection(reply, invalid({}, 'The body must be one message of JSON-RPC.'));
  const message = body as Message;
  // With the id of a session it begins none, which costs more.
  const isNew = (request.headers[SESSION_HEADER] ?? '') === '';
  if (isNew && message.method === 'initialize') return begin(parts, request, reply, message);
  const found = await findSession(parts, request);
  if ('code' in found) return sendRejection(reply, found);
  // A client that was killed after it sent this is not back.
  const { stream, isAwaited } = found.session;
  const isBack = (stream === 'cut' || isAwaited === true) && !request.raw.socket.destroyed;
  return parts.clients.hear(found.id, { isBack }, () => answer(parts, request, reply, found));
}

type Found = { id: string; session: McpSession };

/** A new MCP session; it is stored before its client learns its id. */
async function begin(parts: Parts, request: FastifyRequest, reply: FastifyReply, message: Message) {
  const { name, version } = message.params?.clientInfo ?? {};
  const client = [name, version].filter((one) => typeof one === 'string').join(' ');
  const { organizationId, userId, keyHash } = request.caller;
  const taken = await parts.places.take(organizationId);
  if ('code' in taken) return sendRejection(reply, taken);
  using place = taken;
  const id = newId('mcp');
  const session: McpSession = {
    organizationId,
    userId,
    keyHash,
    client: clientText(client),
    stream: 'none',
    streamId: null,
    ended: null,
  };
  const answered = await answer(parts, request, reply, { id, session }, async (status, text) => {
    // A client that offers no version of the protocol, say, has no session.
    if (status !== 200 || !('result' in (JSON.parse(text) as object))) return;
    await parts.mcp.sessions.create(id, session);
    place.keep(id);
    void reply.header(SESSION_HEADER, id);
  });
  return answered;
}

async function answer(
  parts: Parts,
  request: FastifyRequest,
  reply: FastifyReply,
  { id, session }: Found,
  beforeAnswer: (status: number, text: string) => Promise<void> = async () => undefined,
): Promise<FastifyReply> {
  const headers = new Headers();
  for (const name of ['accept', 'content-type', 'mcp-protocol-version']) {
    const value = request.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  // The protocol's library is loaded by the first message: most services never get one.
  const { answerMessage } = await import('./answer-message.ts');
  const response = await answerMessage(headers, request.body, (name, given) =>
    callTool(parts.server, parts, {
      request,
      session: { id, client: session.client },
      name,
      given,
    }),
  );
  const text = await response.text();
  await beforeAnswer(response.status, text);
  return reply
    .code(response.status)
    .type(response.headers.get('content-type') ?? 'application/json')
    .send(text === '' ? undefined : text);
}

/**
 * The MCP session that the request names, if it was begun by the same key or by a JWT of the same
 * user; or why there is none. @throws Unavailable
 */
async function findSession(
  { mcp }: Parts,
  { headers, caller }: FastifyRequest,
): Promise<Found | Rejection> {
  const id = headers[SESSION_HEADER];
  if (typeof id !== 'string' || id === '')
    return invalid({ field: SESSION_HEADER }, 'The header Mcp-Session-Id is missing.');
  const session = isId(id) ? await mcp.sessions.get(id) : null;
  if (session === null || !isOf(session, caller) || session.ended !== null) {
    const message = 'There is no such MCP session; begin a new one with initialize.';
    return reject('NOT_FOUND', { path: PATH, [SESSION_HEADER]: id }, { message });
  }
  return { id, session };
}

function isOf({ organizationId, userId, keyHash }: McpSession, caller: Caller): boolean {
  if (keyHash !== undefined && keyHash !== caller.keyHash) return false;
  return organizationId === caller.organizationId && userId === caller.userId;
}

/**
 * The stream of messages to the client. The service has none to send: what matters is that it is
 * open, by which the service sees that the client is there.
 */
async function openStream(parts: Parts, request: FastifyRequest, reply: FastifyReply) {
  if (!(request.headers.accept ?? '').includes('text/event-stream'))
    return sendRejection(reply, invalid({}, 'Accept must have text/event-stream.'));
  const found = await findSession(parts, request);
  if ('code' in found) return sendRejection(reply, found);
  const { socket } = request.raw;
  const { promise: closed, resolve } = Promise.withResolvers<boolean>();
  const close = (isProcessEnding = false) => resolve(isProcessEnding);
  // The place is reserved before anything is waited for, so that two requests cannot both have it.
  const reservation = parts.clients.reserve(found.id, {
    organizationId: request.caller.organizationId,
    end: close,
    isAllowed: async () => isStillAllowed(parts, request),
  });
  if (reservation === null) {
    const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS };
    return sendRejection(reply, reject('STREAM_LIMIT_EXCEEDED', { limit: STREAMS_MAX }, retry));
  }
  void closed.then(() => reservation.cut());
  // The answer may wait behind an earlier one of its connection: then it has no end of its own.
  const onClose = () => close();
  socket.once('close', onClose);
  void closed.then(() => socket.off('close', onClose));
  if (socket.destroyed) close();
  try {
    if ((await reservation.opened()) === null) {
      close();
      return sendRejection(reply, reject('NOT_FOUND', { path: PATH }));
    }
  } catch (error) {
    close();
    throw error;
  }
  reply.hijack();
  const sink = openSink(reply.raw, { ...answerHeaders(request), ...STREAM_HEADERS });
  sink.onClose(onClose);
  const { graceMs } = parts.mcp;
  sink.write(retryAfter(graceMs / 3));
  sink.write(COMMENT);
  // A client that does not read is no reason to hold more than one comment for it.
  let isFull = false;
  sink.onDrain(() => (isFull = false));
  const timer = setInterval(() => (isFull ||= !sink.write(COMMENT)), COMMENT_EVERY_MS);
  void closed.then((isProcessEnding) => {
    clearInterval(timer);
    if (isProcessEnding) sink.write(retryAfter(graceMs * RESTART_GRACES));
    return sink.end();
  });
  return reply;
}

async function isStillAllowed({ authenticate }: Parts, request: FastifyRequest): Promise<boolean> {
  const credential = bearerOf(request.headers.authorization);
  return credential !== null && (await authenticate(credential)) !== null;
}

/**
 * Ends the MCP session and, as the user, the browser sessions that end with it. What cannot be
 * stopped now, or is being made, the timekeeper stops: the end is stored first. A role that may not
 * stop browser sessions ends only an MCP session that has none.
 */
async function endSession(parts: Parts, request: FastifyRequest, reply: FastifyReply) {
  const found = await findSession(parts, request);
  if ('code' in found) return sendRejection(reply, found);
  const { mcp, views, context } = parts;
  const { id, session: mcpSession } = found;
  const readOwned = async () => {
    const owned = await readOwnedSessions(views, mcpSession.organizationId);
    return owned.filter(({ owner }) => owner.mcpSessionId === id);
  };
  const { role } = request.caller;
  if (!mayDo(role, 'control') && (await readOwned()).length > 0)
    return sendRejection(reply, reject('FORBIDDEN', { role, action: 'control' }));
  const ended = { reason: 'user', note: null } as const;
  await mcp.sessions.change(id, (session) => ({ ...session, ended }));
  parts.places.free(id);
  request.door = { via: 'mcp', client: mcpSession.client };
  const metadata = requestMetadata(request, request.caller);
  const how = { reason: 'user', note: null, metadata } as const;
  for (const session of await readOwned())
    try {
      await stopOwnedSession(context, session, how);
    } catch (error) {
      parts.log.warn({ err: error, sessionId: session.id }, 'session not stopped; again soon');
    }
  return reply.code(204).send();
}
