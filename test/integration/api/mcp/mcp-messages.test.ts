import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { INITIALIZE, postTo } from '#test/support/clients/mcp-messages.ts';
import { eventually } from '#test/support/service/service.ts';

/** The MCP server as clients see it that send each message themselves. */

let app: Awaited<ReturnType<typeof startApp>>;
let url: URL;
let post: ReturnType<typeof postTo>;

beforeAll(async () => {
  app = await startApp();
  url = new URL('/mcp', await app.listen());
  post = postTo(url);
});
afterAll(() => app?.[Symbol.asyncDispose]());

/** An MCP session of a client without a stream. */
async function beginPlainly(): Promise<string> {
  return String((await post(INITIALIZE)).headers.get('mcp-session-id'));
}

describe('an MCP session', () => {
  it('whose stream was cut goes on as one without a stream, once its client sends more', async () => {
    const id = await beginPlainly();
    const header = { authorization: 'Bearer any', 'mcp-session-id': id };
    const stream = await fetch(url, { headers: { ...header, accept: 'text/event-stream' } });
    const stored = async () => (await app.mcpSessions.get(id))?.stream;
    await stream.body?.cancel();
    await eventually(async () => (await stored()) === 'cut', 'the store has that it is cut');
    expect((await post({ id: 2, method: 'ping' }, header)).status).toBe(200);
    expect(await stored()).toBe('none');
  });

  it('is not begun where the protocol refuses it, nor again within another one', async () => {
    const before = (await app.mcpSessions.all()).length;
    const noParams = await post({ ...INITIALIZE, params: {} });
    expect(await noParams.json()).toHaveProperty('error');
    expect(noParams.headers.get('mcp-session-id')).toBeNull();
    const within = await post(INITIALIZE, { 'mcp-session-id': 'mcp_unknown' });
    expect(within.status).toBe(404);
    expect(await app.mcpSessions.all()).toHaveLength(before);
  });

  it('has its client’s name without control characters, of at most 100 characters', async () => {
    const clientInfo = { name: `a\u0007\n${'😀'.repeat(60)}`, version: '1' };
    const begun = await post({ ...INITIALIZE, params: { ...INITIALIZE.params, clientInfo } });
    const stored = await app.mcpSessions.get(String(begun.headers.get('mcp-session-id')));
    expect(stored?.client).toBe(`a ${'😀'.repeat(49)}`);
  });
});

describe('the MCP server', () => {
  it('does a call once that is repeated with its Idempotency-Key', async () => {
    const header = { 'mcp-session-id': await beginPlainly(), 'idempotency-key': 'of-one-message' };
    const params = { name: 'create_session', arguments: {} };
    const create = async () => {
      const answer = await post({ id: 2, method: 'tools/call', params }, header);
      const { result } = (await answer.json()) as { result: { structuredContent: { id: string } } };
      return result.structuredContent.id;
    };
    const id = await create();
    expect(await create()).toBe(id);
    await app.request('DELETE', `/api/sessions/${id}`);
  });
});
