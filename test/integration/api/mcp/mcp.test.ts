import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { BOTH, INITIALIZE, postTo } from '#test/support/clients/mcp-messages.ts';
import { eventually } from '#test/support/service/service.ts';

/** The MCP server as the protocol's own client sees it. */

let app: Awaited<ReturnType<typeof startApp>>;
let url: URL;
let post: ReturnType<typeof postTo>;

beforeAll(async () => {
  app = await startApp();
  await app.registerOther();
  url = new URL('/mcp', await app.listen());
  post = postTo(url);
});
afterAll(() => app?.[Symbol.asyncDispose]());

type Answer = {
  content: { type: string; text?: string; data?: string; mimeType?: string }[];
  structuredContent?: Record<string, never>;
  isError?: boolean;
};

/** A client of the MCP server; disposing closes it as a program does that leaves in good order. */
async function connect(bearer = 'any', over: 'HTTP' | 'stdio' = 'HTTP') {
  const requestInit = { headers: { authorization: `Bearer ${bearer}` } };
  const transport =
    over === 'HTTP'
      ? new StreamableHTTPClientTransport(url, { requestInit })
      : new StdioClientTransport({
          command: process.execPath,
          args: ['src/apps/client/mcp/stdio.ts'],
          env: { API_URL: url.origin, API_KEY: bearer },
        });
  const client = new Client({ name: 'agent', version: '1.0' });
  await client.connect(transport);
  const call = async (name: string, given: Record<string, unknown> = {}) =>
    (await client.callTool({ name, arguments: given })) as Answer;
  return {
    client,
    transport,
    call,
    create: async (given: Record<string, unknown> = {}): Promise<string> =>
      textOf(await call('create_session', given)).id,
    sessionId: () => String('sessionId' in transport ? transport.sessionId : null),
    terminate: async () => {
      if ('terminateSession' in transport) await transport.terminateSession();
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

function textOf({ content }: Answer) {
  return JSON.parse(content[0]?.text ?? 'null');
}
const linesOf = ({ content }: Answer) => content.slice(1).map(({ text }) => text);
const sessionOf = async (id: string) => (await app.request('GET', `/api/sessions/${id}`)).body;
const eventsOf = async (id: string) =>
  (await app.request('GET', `/api/sessions/${id}/history`)).body.events;
const hasEnded = (id: string) => async () => (await sessionOf(id)).status === 'stopped';

/** What the end of a session was requested for, and by whom. */
async function endOf(id: string) {
  await eventually(hasEnded(id), `session ${id} has ended`);
  const events: { type: string; data: object; actor: object }[] = await eventsOf(id);
  const { data, actor } = events.find(({ type }) => type === 'session.stop-requested') ?? {};
  return { ...data, actor };
}

/** An MCP session of a client without a stream. */
async function beginPlainly(): Promise<string> {
  return String((await post(INITIALIZE)).headers.get('mcp-session-id'));
}

describe('the tools', () => {
  it.each(['HTTP', 'stdio'] as const)('do what the API does, each called over %s', async (over) => {
    await using agent = await connect('any', over);
    const { tools } = await agent.client.listTools();
    const left = new Set(tools.map(({ name }) => name));
    const call = async (name: string, given: Record<string, unknown> = {}) => {
      left.delete(name);
      const answer = await agent.call(name, given);
      expect(answer.isError, textIn(answer)).toBeUndefined();
      return answer;
    };
    const created = await call('create_session', { session_name: 'of an agent', duration: '30m' });
    const { id: session_id, cdp_url: cdpUrl } = textOf(created);
    const line = [`--cdp-endpoint ${cdpUrl}`];
    expect(linesOf(created)).toEqual(line);
    expect(created.structuredContent).toMatchObject({ id: session_id, status: 'active' });
    expect(linesOf(await call('get_session', { session_id }))).toEqual(line);
    expect(textOf(await call('list_sessions', { status: 'active' })).sessions).toMatchObject([
      { id: session_id },
    ]);
    const extended = await call('extend_session', { session_id, duration: '10m' });
    expect(textOf(extended).message).toContain('10m');
    expect(linesOf(extended)).toEqual(line);
    const picture = await call('screenshot', { session_id, max_width: 320 });
    expect(picture.content[0]).toMatchObject({ type: 'image', mimeType: 'image/jpeg' });
    expect(Buffer.from(String(picture.content[0]?.data), 'base64')[0]).toBe(0xff);
    expect(linesOf(picture)).toEqual(line);
    const asked = await call('request_handoff', { session_id, instructions: 'log in, please' });
    expect(textOf(asked)).toMatchObject({ status: 'requested' });
    const history = await call('session_history', { session_id, limit: 1 });
    expect(textOf(history).events).toMatchObject([
      { type: 'session.requested', actor: { id: 'ada', via: 'mcp', client: 'agent 1.0' } },
    ]);
    expect(linesOf(history)).toEqual(line);
    expect(textOf(await call('stop_session', { session_id }))).toMatchObject({ session_id });
    await eventually(hasEnded(session_id), 'it has stopped');
    const why = await call('why_ended', { session_id });
    expect(textOf(why).summary).toContain('stopped');
    expect(linesOf(why)).toEqual([]);
    expect(textOf(await call('usage', { limit: 5 })).total_sessions).not.toBeNull();
    expect([...left]).toEqual([]);
  });

  it('are refused with the API’s own error, and nothing of it happens', async () => {
    await using viewer = await connect('viewer');
    expect(textOf(await viewer.call('list_sessions')).sessions).toBeInstanceOf(Array);
    await using agent = await connect();
    const refusals = {
      FORBIDDEN: viewer.call('create_session'),
      SESSION_NOT_FOUND: agent.call('get_session', { session_id: '../organization' }),
      INVALID_DURATION: agent.call('create_session', { duration: '25h' }),
      INVALID_REQUEST: agent.call('create_session', { colour: 'red' }),
      NOT_FOUND: agent.call('open_page', { url: 'https://example.com' }),
    };
    for (const [error, answering] of Object.entries(refusals)) {
      const answer = await answering;
      expect(answer.isError).toBe(true);
      expect(textOf(answer)).toMatchObject({ error, code: expect.any(Number) });
    }
    for (const [name, given, field] of [
      ['create_session', { keep: 'yes' }, 'keep'],
      ['get_session', {}, 'session_id'],
      ['stop_session', { session_id: 7 }, 'session_id'],
    ] as const)
      expect(textOf(await agent.call(name, given))).toMatchObject({ context: { field } });
    const { sessions } = (await app.request('GET', '/api/sessions?status=active')).body;
    expect(sessions).toEqual([]);
  });
});

const textIn = (answer: Answer) => JSON.stringify(answer.content);

describe('an MCP session', () => {
  it('that its client ends, ends its browser sessions as the user, but those to be kept', async () => {
    await using agent = await connect();
    const own = await agent.create();
    const kept = await agent.create({ keep: true });
    const elsewhere = (await app.request('POST', '/api/sessions', {})).body.id;
    await agent.terminate();
    const actor = { kind: 'user', id: 'ada', via: 'mcp', client: 'agent 1.0' };
    expect(await endOf(own)).toMatchObject({ reason: 'user', actor });
    for (const id of [kept, elsewhere]) {
      expect(await sessionOf(id)).toMatchObject({ status: 'active' });
      await app.request('DELETE', `/api/sessions/${id}`);
    }
  });

  it('whose client is cut off ends with its browser sessions; another one goes on', async () => {
    await using staying = await connect();
    const stays = await staying.create();
    const cut = await connect();
    const ends = await cut.create();
    const kept = await cut.create({ keep: true });
    // The stream is opened after the first answer.
    await eventually(
      async () => (await app.mcpSessions.get(cut.sessionId()))?.stream === 'open',
      'its stream is open',
    );
    await cut.client.close();
    expect(await endOf(ends)).toMatchObject({
      reason: 'organization',
      note: 'its MCP client agent 1.0 was cut off and did not come back',
      actor: { kind: 'service', id: 'timekeeper/lost-client' },
    });
    for (const id of [stays, kept]) expect(await sessionOf(id)).toMatchObject({ status: 'active' });
    await app.request('DELETE', `/api/sessions/${kept}`);
    await staying.terminate();
    await endOf(stays);
  });

  it('of a client without a stream ends once it is silent for long', async () => {
    const header = { 'mcp-session-id': await beginPlainly() };
    const create = { name: 'create_session', arguments: {} };
    const created = await post({ id: 2, method: 'tools/call', params: create }, header);
    const { result } = (await created.json()) as { result: Answer };
    const { id } = textOf(result);
    // Longer than the grace of one that is cut off: another client comes and is cut off meanwhile.
    const other = await connect();
    const ends = await other.create();
    await other.client.close();
    await endOf(ends);
    expect(await sessionOf(id)).toMatchObject({ status: 'active' });
    app.pass(60_000);
    const note = 'its MCP client plain 2 was silent';
    expect(await endOf(id)).toMatchObject({ reason: 'organization', note });
    expect((await post({ id: 3, method: 'ping' }, header)).status).toBe(404);
  });

  it('is unknown to other users, organizations and keys, and once it has ended', async () => {
    const id = await beginPlainly();
    const ping = { id: 2, method: 'ping' };
    const header = { 'mcp-session-id': id };
    expect((await post(ping, header)).status).toBe(200);
    for (const bearer of ['other', 'member', 'key']) {
      const foreign = { ...header, authorization: `Bearer ${bearer}` };
      expect((await post(ping, foreign)).status).toBe(404);
      for (const method of ['GET', 'DELETE']) {
        const headers = { ...foreign, accept: 'text/event-stream' };
        expect((await fetch(url, { method, headers })).status).toBe(404);
      }
    }
    expect((await post(ping, { 'mcp-session-id': 'no.id' })).status).toBe(404);
    expect((await post(ping)).status).toBe(400);
    const headers = { authorization: 'Bearer any', ...header };
    expect((await fetch(url, { method: 'DELETE', headers })).status).toBe(204);
    expect((await post(ping, header)).status).toBe(404);
    expect((await fetch(url, { method: 'DELETE', headers })).status).toBe(404);
  });

  it('with browser sessions is not ended by a role that may not stop them', async () => {
    await using agent = await connect();
    const own = await agent.create();
    const end = (id: string) =>
      fetch(url, {
        method: 'DELETE',
        // The same user, with a token of a lower role.
        headers: { authorization: 'Bearer viewer/ada', 'mcp-session-id': id },
      });
    const refused = await end(agent.sessionId());
    expect([refused.status, await refused.json()]).toMatchObject([403, { error: 'FORBIDDEN' }]);
    expect(await app.mcpSessions.get(agent.sessionId())).toMatchObject({ ended: null });
    expect(await sessionOf(own)).toMatchObject({ status: 'active' });
    expect((await end(await beginPlainly())).status).toBe(204);
    await agent.terminate();
    await endOf(own);
  });

  it('has one stream: a newer one closes the older, and the session goes on', async () => {
    const id = await beginPlainly();
    const headers = {
      authorization: 'Bearer any',
      accept: 'text/event-stream',
      'mcp-session-id': id,
    };
    const open = () => fetch(url, { headers });
    const both = await Promise.all([open(), open()]);
    const ended: Response[] = [];
    for (const one of both) void drain(one).then(() => ended.push(one));
    await eventually(() => Promise.resolve(ended.length === 1), 'one of two at once is closed');
    const third = await open();
    await eventually(() => Promise.resolve(ended.length === 2), 'the other is closed as well');
    expect(await app.mcpSessions.get(id)).toMatchObject({ stream: 'open', ended: null });
    await third.body?.cancel();
    await eventually(
      async () => (await app.mcpSessions.get(id))?.stream === 'cut',
      'the store has that the last one is cut',
    );
    expect(await app.mcpSessions.get(id)).toMatchObject({ streamId: null });
  });
});

async function drain({ body }: Response): Promise<void> {
  for await (const _ of body ?? []);
}

describe('the MCP server', () => {
  it('refuses pages of other places, whatever they ask', async () => {
    const id = await beginPlainly();
    const headers = {
      authorization: 'Bearer any',
      accept: 'text/event-stream',
      'mcp-session-id': id,
    };
    const rebound = { origin: 'http://rebound.example:8080', host: 'rebound.example:8080' };
    for (const origin of ['http://rebound.example:8080', 'null', 'https://browsers.example.evil']) {
      expect((await post(INITIALIZE, { ...rebound, origin })).status).toBe(403);
      for (const method of ['GET', 'DELETE'])
        expect((await fetch(url, { method, headers: { ...headers, origin } })).status).toBe(403);
    }
    for (const origin of ['http://localhost:6274', 'https://browsers.example', url.origin])
      expect(
        (await post({ id: 2, method: 'ping' }, { ...headers, origin, accept: BOTH })).status,
      ).toBe(200);
  });

  it('takes one message at a time, of JSON-RPC', async () => {
    const many = await fetch(url, {
      method: 'POST',
      body: JSON.stringify([{ jsonrpc: '2.0', ...INITIALIZE }]),
      headers: { authorization: 'Bearer any', 'content-type': 'application/json', accept: BOTH },
    });
    expect(many.status).toBe(400);
    expect((await post(INITIALIZE, { authorization: 'Bearer ' })).status).toBe(401);
    const refused = await post(INITIALIZE, { accept: 'text/html' });
    expect([refused.status, refused.headers.get('mcp-session-id')]).toEqual([406, null]);
  });

  it('takes for a call what the API takes for the request, by its real bytes', async () => {
    const id = await beginPlainly();
    const description = 'x'.repeat(1_000);
    const cost = async (ask: () => Promise<Response>) => {
      const before = await remaining();
      expect((await ask()).ok).toBe(true);
      // Asking what is left takes one unit.
      return before - (await remaining()) - 1;
    };
    const headers = { authorization: 'Bearer any', 'content-type': 'application/json' };
    const body = JSON.stringify({ description });
    const rest = new URL('/api/sessions', url);
    const byRest = await cost(() => fetch(rest, { method: 'POST', body, headers }));
    const message = JSON.stringify({
      ...{ jsonrpc: '2.0', id: 2, method: 'tools/call' },
      params: { name: 'create_session', arguments: { description } },
    });
    const chunked = () =>
      fetch(url, {
        method: 'POST',
        // A stream is sent in chunks, without a length.
        body: new Blob([message]).stream(),
        duplex: 'half',
        headers: { ...headers, accept: BOTH, 'mcp-session-id': id },
      });
    expect(await cost(() => post(INITIALIZE))).toBe(10);
    expect(byRest).toBe(4);
    expect(await cost(chunked)).toBe(byRest);
    await app.request('POST', '/api/sessions/stop', { user_id: 'ada' });
  });
});

async function remaining(): Promise<number> {
  const headers = { authorization: 'Bearer any' };
  const answer = await fetch(new URL('/api/organization', url), { headers });
  return Number(answer.headers.get('x-ratelimit-remaining'));
}
