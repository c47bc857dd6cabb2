import type { FastifyInstance, FastifyRequest } from 'fastify';
import { problemBody, reject } from '#src/kernel/errors.ts';
import { throughDoor, type Door } from '#src/roles/api/http/door.ts';
import { loadSession, type ApiDependencies } from '#src/roles/api/dependencies.ts';
import { presentSession } from '#src/roles/api/schemas/present-session.ts';
import { tools, type ApiCall, type Arguments, type Tool } from './tools.ts';

/** Content of an answer, as the Model Context Protocol has it. */
type Content = { type: 'text'; text: string } | { type: 'image'; data: string; mimeType: string };
export type ToolAnswer = {
  content: Content[];
  structuredContent?: Record<string, unknown>;
  isError?: true;
};

/** The MCP session in which a tool is called. */
export type CallingSession = { id: string; client: string };

/** What one HTTP request took of the rate limit before its tool is called. */
const PAID = 1;

/**
 * Calls a tool: one request to the API, through its own server from inside, with the caller's
 * credential. Validation, roles, rate limit and errors are those of the API. A refusal is an answer
 * with `isError` and the API's error body.
 */
export async function callTool(
  server: FastifyInstance,
  dependencies: Pick<ApiDependencies, 'context' | 'addresses'>,
  {
    request,
    session,
    name,
    given,
  }: {
    request: FastifyRequest;
    session: CallingSession;
    name: string;
    given: Arguments;
  },
): Promise<ToolAnswer> {
  const tool = tools.find((one) => one.name === name);
  if (tool === undefined) return refused(problemBody(reject('NOT_FOUND', { tool: name })));
  const call = tool.call(given);
  if (call === null) return invalid('session_id', 'session_id must be the id of a session.');
  // No field of the API, whose schemas check all others.
  if (!['undefined', 'boolean'].includes(typeof given['keep']))
    return invalid('keep', 'keep must be true or false.');
  const door: Door = { via: 'mcp', client: session.client, paid: PAID };
  if (tool.name === 'create_session' && given['keep'] !== true) door.mcpSessionId = session.id;
  const answer = await throughDoor(door, () => inject(server, request, call));
  const type = answer.headers['content-type'] ?? '';
  if (answer.statusCode >= 400) return refused(answer.json<Record<string, unknown>>());
  const lines = await endpointLines(dependencies, request, { tool, given, answer });
  if (type.startsWith('image/')) {
    const data = answer.rawPayload.toString('base64');
    return { content: [{ type: 'image', data, mimeType: type }, ...lines] };
  }
  const body = answer.json<Record<string, unknown>>();
  return { content: [{ type: 'text', text: answer.payload }, ...lines], structuredContent: body };
}

function invalid(field: string, message: string): ToolAnswer {
  return refused(problemBody(reject('INVALID_REQUEST', { field }, { message })));
}

function refused(problem: Record<string, unknown>): ToolAnswer {
  const text = JSON.stringify(problem);
  return { content: [{ type: 'text', text }], structuredContent: problem, isError: true };
}

/**
 * The body has its real length, by which the API counts its cost. The message's Idempotency-Key is
 * the call's: `bss-mcp` repeats messages whose answer was lost.
 */
function inject(server: FastifyInstance, request: FastifyRequest, call: ApiCall) {
  const { method, path, query = {}, body } = call;
  const { authorization, host, traceparent, 'idempotency-key': key } = request.headers;
  return server.inject({
    method,
    url: `${path}${searchOf(query)}`,
    remoteAddress: request.ip,
    headers: {
      ...(authorization === undefined ? {} : { authorization }),
      ...(host === undefined ? {} : { host }),
      ...(typeof traceparent === 'string' ? { traceparent } : {}),
      ...(typeof key === 'string' ? { 'idempotency-key': key } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
  });
}

function searchOf(query: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, textOf(one));
  return search.size === 0 ? '' : `?${search.toString()}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

type Answered = {
  tool: Tool;
  given: Arguments;
  answer: { json: () => Listed };
};

/** A line for Playwright MCP for each session of the answer that has a browser. */
async function endpointLines(
  dependencies: Pick<ApiDependencies, 'context' | 'addresses'>,
  { caller }: FastifyRequest,
  { tool, given, answer }: Answered,
): Promise<Content[]> {
  const urls =
    'session_id' in given && tool.name !== 'get_session'
      ? [await cdpUrlOf(String(given['session_id']))]
      : cdpUrlsIn(answer.json());
  return urls
    .filter((url) => url !== null)
    .map((url) => ({ type: 'text', text: `--cdp-endpoint ${url}` }));

  async function cdpUrlOf(id: string): Promise<string | null> {
    const { context, addresses } = dependencies;
    // The call has succeeded; its answer must not be lost for a line.
    const loading = loadSession(context, caller.organizationId, id);
    const session = await loading.catch(() => null);
    return session === null ? null : presentSession(session.state, caller, addresses).cdp_url;
  }
}

/** A session, or a list of sessions. */
type Listed = { cdp_url?: string | null; sessions?: { cdp_url?: string | null }[] };

function cdpUrlsIn(body: Listed) {
  return [body, ...(body.sessions ?? [])].map(({ cdp_url: url }) => url ?? null);
}
