import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request as forward, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';

/** `bss-mcp`: what a client that starts it writes and reads, a line a message. */

let app: Awaited<ReturnType<typeof startApp>>;
let address: URL;
/** A proxy before the service, which serves it below /base. */
let proxy: ReturnType<typeof startProxy>;
/** What the proxy does with a request; true: it has answered itself. */
let meddle: (method: string, answer: Answering) => boolean;
type Answering = {
  refuse: (status: number) => void;
  dropSession: () => void;
  /** The service does what is asked; the client learns only that the proxy got no answer. */
  loseAnswer: () => void;
};
let program: ReturnType<typeof start>;

beforeAll(async () => {
  app = await startApp();
  address = new URL(await app.listen());
  proxy = startProxy();
  await once(proxy, 'listening');
});
afterAll(async () => {
  proxy?.closeAllConnections();
  proxy?.close();
  await app?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  meddle = () => false;
  program = start();
});
afterEach(() => program.child.kill('SIGKILL'));

function startProxy() {
  return createServer((incoming, outgoing) => {
    let drops = false;
    let loses = false;
    const answering: Answering = {
      refuse: (status) => outgoing.writeHead(status).end('{"message":"away"}'),
      dropSession: () => (drops = true),
      loseAnswer: () => (loses = true),
    };
    if (meddle(String(incoming.method), answering)) return;
    const path = String(incoming.url).replace(/^\/base/, '');
    const asked = forward(new URL(path, address), {
      method: String(incoming.method),
      headers: incoming.headers,
    });
    asked.on('response', (answer: IncomingMessage) => {
      if (loses) {
        answer.resume().on('end', () => answering.refuse(502));
        return;
      }
      if (drops) delete answer.headers['mcp-session-id'];
      outgoing.writeHead(Number(answer.statusCode), answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    asked.on('error', () => outgoing.destroy());
    outgoing.on('close', () => asked.destroy());
    incoming.pipe(asked);
  }).listen(0, '127.0.0.1');
}

type Answer = { id: unknown; result?: Record<string, never>; error?: { message: string } };

function start() {
  const { port } = proxy.address() as AddressInfo;
  const child = spawn(process.execPath, ['src/apps/client/mcp/stdio.ts'], {
    env: { API_URL: `http://127.0.0.1:${port}/base/`, API_KEY: 'any' },
  });
  const answers: Answer[] = [];
  const said: string[] = [];
  createInterface(child.stdout).on('line', (line) => answers.push(JSON.parse(line)));
  createInterface(child.stderr).on('line', (line) => said.push(line));
  // It may have left while a line is written.
  child.stdin.on('error', () => undefined);
  let ids = 0;
  const write = (message: object) =>
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  async function ask(method: string, params: object = {}): Promise<Answer> {
    const id = (ids += 1);
    write({ id, method, params });
    await eventually(
      () => Promise.resolve(answers.some((one) => one.id === id)),
      `${method} is answered`,
    );
    return answers.find((one) => one.id === id) as Answer;
  }
  return {
    child,
    answers,
    said,
    write,
    ask,
    async begin() {
      const clientInfo = { name: 'of a test', version: '1' };
      const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
      const begun = await ask('initialize', params);
      write({ method: 'notifications/initialized' });
      return begun;
    },
    async create(): Promise<string> {
      const { result } = await ask('tools/call', { name: 'create_session', arguments: {} });
      return (result as { structuredContent?: { id: string } }).structuredContent?.id ?? '';
    },
    exit: async () => (child.exitCode === null ? (await once(child, 'exit'))[0] : child.exitCode),
  };
}

const mcpSessions = async () => (await app.mcpSessions.all()).filter(({ ended }) => ended === null);
const stateOf = async (id: string) => (await app.request('GET', `/api/sessions/${id}`)).body;
async function endOf(id: string): Promise<string> {
  await eventually(async () => (await stateOf(id)).status === 'stopped', `${id} has ended`);
  return (await stateOf(id)).ended_reason;
}

describe('the program on stdio', () => {
  it('ends its MCP session and the browser sessions once its stdin ends', async () => {
    await program.begin();
    const id = await program.create();
    program.child.stdin.end();
    expect(await program.exit()).toBe(0);
    expect(await endOf(id)).toBe('user');
    expect(await mcpSessions()).toEqual([]);
  });

  it('leaves at once at a signal, though an answer is awaited since its stdin ended', async () => {
    const other = start();
    try {
      let held = 0;
      for (const one of [program, other]) {
        await one.begin();
        await one.ask('tools/list');
      }
      // Calls are answered never.
      meddle = (method) => {
        held += method === 'POST' ? 1 : 0;
        return method === 'POST';
      };
      for (const one of [program, other]) one.write({ id: 'held', method: 'ping' });
      await eventually(() => Promise.resolve(held === 2), 'both calls are under way');
      const left = [other, program].map(async (one) => {
        expect(await one.exit()).toBe(0);
        return one;
      });
      for (const one of [other, program]) {
        one.child.stdin.end();
        await eventually(
          () => Promise.resolve(one.said.join('\n').includes('stdin has ended')),
          'it waits for its answer',
        );
      }
      program.child.kill('SIGTERM');
      expect(await Promise.race(left)).toBe(program);
      await Promise.all(left);
      expect(await mcpSessions()).toEqual([]);
    } finally {
      other.child.kill('SIGKILL');
    }
  });

  it('ends its MCP session before a client that closes it kills it, also during a call', async () => {
    const { port } = proxy.address() as AddressInfo;
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: ['src/apps/client/mcp/stdio.ts'],
      env: { API_URL: `http://127.0.0.1:${port}/base`, API_KEY: 'any' },
    });
    const client = new Client({ name: 'agent', version: '1' });
    await client.connect(transport);
    await client.listTools();
    let held = 0;
    meddle = (method) => {
      held += method === 'POST' ? 1 : 0;
      return method === 'POST';
    };
    const pinging = client.ping().catch(() => 'closed');
    await eventually(() => Promise.resolve(held > 0), 'the call is under way');
    await client.close();
    expect(await pinging).toBe('closed');
    expect(await mcpSessions()).toEqual([]);
  });

  it('does a call once whose answer is lost on the way, though it repeats it', async () => {
    await program.begin();
    await program.ask('tools/list');
    const losing = () => {
      let posts = 0;
      meddle = (method, { loseAnswer }) => {
        posts += method === 'POST' ? 1 : 0;
        // The second one may be that of `notifications/initialized`.
        if (method === 'POST' && posts <= 2) loseAnswer();
        return false;
      };
      return () => posts;
    };
    const created = losing();
    const id = await program.create();
    expect(created()).toBeGreaterThan(1);
    const { sessions } = (await app.request('GET', '/api/sessions?status=active')).body;
    expect(sessions).toMatchObject([{ id }]);
    const { expires_at: before } = await stateOf(id);
    const extended = losing();
    const given = { session_id: id, duration: '10m' };
    await program.ask('tools/call', { name: 'extend_session', arguments: given });
    expect(extended()).toBeGreaterThan(1);
    const { expires_at: after } = await stateOf(id);
    expect(Date.parse(after) - Date.parse(before)).toBe(600_000);
    program.child.stdin.end();
    await endOf(id);
  });

  it('closes the stream of an MCP session that its client has replaced by another', async () => {
    await program.begin();
    const isOpen = async (id: string) => (await app.mcpSessions.get(id))?.stream === 'open';
    const [first] = await mcpSessions();
    await eventually(() => isOpen(String(first?.id)), 'the first stream is open');
    await program.begin();
    await eventually(async () => !(await isOpen(String(first?.id))), 'it is closed');
    await eventually(
      async () => (await mcpSessions()).some(({ stream }) => stream === 'open'),
      'the other one’s is open',
    );
  });

  it('leaves no browser session behind if it is killed', async () => {
    await program.begin();
    const id = await program.create();
    const newest = async () => (await mcpSessions()).at(-1);
    await eventually(async () => (await newest())?.stream === 'open', 'its stream is open');
    program.child.kill('SIGKILL');
    expect(await endOf(id)).toBe('organization');
  });

  it('begins again, once for all that waits, where the service has ended the session', async () => {
    await program.begin();
    for (const { id } of await mcpSessions()) await app.mcpSessions.remove(id);
    const before = program.answers.length;
    const asked = await Promise.all([1, 2, 3].map(() => program.ask('tools/list')));
    for (const { result } of asked) expect(result).toHaveProperty('tools');
    expect(await mcpSessions()).toHaveLength(1);
    // The client gets no answer to the repeated initialize.
    expect(program.answers).toHaveLength(before + 3);
    expect(program.said.join('\n')).toContain('beginning a new one');
  });

  it('begins again also where the service is away, too busy, or forgets the session’s id', async () => {
    await program.begin();
    for (const { id } of await mcpSessions()) await app.mcpSessions.remove(id);
    let posts = 0;
    meddle = (method, { refuse, dropSession }) => {
      if (method !== 'POST') return false;
      posts += 1;
      if (posts === 2) refuse(503);
      else if (posts === 3) refuse(429);
      else if (posts === 4) dropSession();
      return posts === 2 || posts === 3;
    };
    expect((await program.ask('tools/list')).result).toHaveProperty('tools');
    expect(posts).toBeGreaterThan(4);
  });

  it('opens its stream again, also if the first one is refused', async () => {
    let gets = 0;
    meddle = (method, { refuse }) => {
      gets += method === 'GET' ? 1 : 0;
      if (method === 'GET' && gets === 1) refuse(503);
      return method === 'GET' && gets === 1;
    };
    await program.begin();
    await eventually(
      async () => (await mcpSessions()).some(({ stream }) => stream === 'open'),
      'its stream is open',
    );
    expect(gets).toBeGreaterThan(1);
  });

  it('ends with an error, and its MCP session, at a line of more than 10 MB', async () => {
    await program.begin();
    const id = await program.create();
    program.child.stdin.write('x'.repeat(11 * 1024 * 1024));
    expect(await program.exit()).toBe(1);
    expect(await endOf(id)).toBe('user');
  });

  it('answers what is no message, and what the service refuses', async () => {
    program.child.stdin.write('not JSON\n');
    await eventually(() => Promise.resolve(program.answers.length === 1), 'it answers');
    expect(program.answers[0]).toMatchObject({ id: null, error: { code: -32_700 } });
    meddle = (_, { refuse }) => (refuse(401), true);
    expect(await program.begin()).toMatchObject({ error: { message: 'away' } });
  });
});
