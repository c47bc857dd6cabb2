import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, it } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamMcpSessions } from '#src/kernel/messaging/jetstream/jetstream-mcp-sessions.ts';
import {
  DEV_KEY,
  eventually,
  startService,
  type RunningService,
} from '#test/support/service/service.ts';

/** What a kill leaves of the browser sessions of MCP clients. */

const MASTER_KEY = 'the-master-key-of-two-processes-of-mcp';
const GRACE = { MCP_GRACE: '6s', MCP_SILENCE: '10m' };
const CALL = { method: 'tools/call', params: { name: 'create_session', arguments: {} } };
const INITIALIZE = {
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'of a fault', version: '1' },
  },
};

type Answer = { id: unknown; result?: { structuredContent?: { id: string } } };

/** `bss-mcp` as a client's process has it, with a browser session. */
async function startClient({ apiUrl }: RunningService) {
  const env = { API_URL: apiUrl, API_KEY: DEV_KEY };
  const child = spawn(process.execPath, ['src/apps/client/mcp/stdio.ts'], { env });
  const answers = new Map<unknown, Answer>();
  createInterface(child.stdout).on('line', (line) => {
    const answer = JSON.parse(line) as Answer;
    answers.set(answer.id, answer);
  });
  async function ask(id: number, message: object) {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...message })}\n`);
    await eventually(() => Promise.resolve(answers.has(id)), `message ${id} is answered`);
    return answers.get(id);
  }
  await ask(1, INITIALIZE);
  const created = await ask(2, CALL);
  const id = created?.result?.structuredContent?.id ?? '';
  return { child, id, ask, [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

it('a killed client and a killed API leave no browser session behind', async () => {
  await using stack = new AsyncDisposableStack();
  const rest = stack.use(
    await startService({ MASTER_KEY, ...GRACE, POOL_MAX: '10', POOL_MIN_IDLE: '2' }),
  );
  const { nats_url: NATS_URL, redis_url: REDIS_URL } = rest.runtime;
  const one = stack.use(
    await startService({ MASTER_KEY, ...GRACE, ROLES: 'api', NATS_URL, REDIS_URL }),
  );
  const sessionOf = async (id: string) =>
    (await rest.request('GET', `/api/sessions/${id}`)).body as Record<string, unknown>;
  const untilEnded = async (id: string) => {
    await eventually(async () => (await sessionOf(id))['status'] === 'stopped', `${id} has ended`);
    expect(await sessionOf(id)).toMatchObject({ ended_reason: 'organization' });
  };
  using staying = await startClient(rest);
  using killed = await startClient(rest);
  using withApi = await startClient(one);
  for (const { id } of [staying, killed, withApi])
    expect(await sessionOf(id)).toMatchObject({ status: 'active' });
  killed.child.kill('SIGKILL');
  await untilEnded(killed.id);
  // The API cannot note that the stream is cut, nor can the client end its MCP session.
  await one.end('SIGKILL');
  withApi.child.kill('SIGKILL');
  await untilEnded(withApi.id);
  expect(await sessionOf(staying.id)).toMatchObject({ status: 'active' });
  expect(await staying.ask(3, { method: 'tools/list' })).toHaveProperty('result.tools');
  staying.child.stdin.end();
  await eventually(
    async () => (await sessionOf(staying.id))['status'] === 'stopped',
    'it has ended with its client',
  );
  expect(await sessionOf(staying.id)).toMatchObject({ ended_reason: 'user' });
});

it('a client of the protocol comes back with its stream after a restart, and one that died then ends', async () => {
  await using stack = new AsyncDisposableStack();
  const common = { MASTER_KEY, ...GRACE, MCP_GRACE: '3s' };
  const rest = stack.use(await startService({ ...common, POOL_MIN_IDLE: '2' }));
  const { nats_url: NATS_URL, redis_url: REDIS_URL } = rest.runtime;
  const service = stack.use(await startService({ ...common, ROLES: 'api', NATS_URL, REDIS_URL }));
  /** With a browser session, and its stream open. */
  async function startAgent(name: string) {
    const requestInit = { headers: { authorization: `Bearer ${DEV_KEY}` } };
    const url = new URL('/mcp', service.apiUrl);
    const transport = new StreamableHTTPClientTransport(url, { requestInit });
    const client = new Client({ name, version: '1.0' });
    await client.connect(transport);
    const created = await client.callTool({ name: 'create_session', arguments: {} });
    const { id } = created.structuredContent as { id: string };
    return { client, id, mcpId: String(transport.sessionId) };
  }
  async function streamOf({ mcpId }: { mcpId: string }) {
    await using connection = await connectJetStream({ url: NATS_URL });
    const stored = await (await createJetStreamMcpSessions(connection)).get(mcpId);
    return { stream: stored?.stream, ended: stored?.ended?.reason ?? null };
  }
  const statusOf = async (id: string) =>
    String((await rest.request('GET', `/api/sessions/${id}`)).body.status);
  const staying = await startAgent('staying');
  const dying = await startAgent('dying');
  for (const one of [staying, dying])
    await eventually(async () => (await streamOf(one)).stream === 'open', 'its stream is open');
  await service.end('SIGTERM');
  await dying.client.close();
  await service.startAgain();
  await eventually(async () => (await streamOf(staying)).stream === 'open', 'it has come back');
  await eventually(async () => (await statusOf(dying.id)) === 'stopped', 'the other has ended');
  expect(await streamOf(dying)).toMatchObject({ ended: 'organization' });
  expect(await statusOf(staying.id)).toBe('active');
  expect(await streamOf(staying)).toEqual({ stream: 'open', ended: null });
  await staying.client.close();
});
