import { kill } from 'node:process';
import { connect } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  openSocket,
  refusal,
  startSession,
  startTestGateway,
  until,
} from '#test/support/gateway.fixture.ts';
import { startRealBrowsers } from '#test/support/clients/real-browser.ts';

const PAGE = 'data:text/html,<title>by BiDi</title><p>hello';
type Site = Awaited<ReturnType<typeof startTestGateway>>;
let browsers: Awaited<ReturnType<typeof startRealBrowsers>>;
let site: Site;

beforeAll(async () => {
  browsers = await startRealBrowsers(1);
  site = await startTestGateway();
  serve(site);
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  await browsers[Symbol.asyncDispose]();
});

function serve({ directory }: Site): void {
  const [browser] = browsers.running;
  if (browser === undefined) throw new Error('no browser');
  directory.set('s1', { status: 'active', cdp: browser.cdp, vnc: browser.vnc });
}

type Answer = {
  id: number | null;
  type: string;
  error?: string;
  result?: { context?: string; ready?: boolean };
};
const MIB = 1024 * 1024;

/** Sends a command and resolves with what has its id. */
async function command(
  client: Awaited<ReturnType<typeof openSocket>>,
  asked: { id: number | null; text: string | Buffer },
): Promise<Answer> {
  const before = client.messages.length;
  client.socket.send(asked.text);
  const answers = (): Answer[] =>
    client.messages
      .slice(before)
      .map((message) => JSON.parse(String(message)) as Answer)
      .filter(({ id }) => id === asked.id);
  await until(() => answers().length > 0, 'the answer');
  return answers()[0] as Answer;
}
const status = (id: number) => ({
  id,
  text: JSON.stringify({ id, method: 'session.status', params: {} }),
});

/** A new page of this client's own session. */
async function openPage(client: Awaited<ReturnType<typeof openSocket>>): Promise<string> {
  const begin = '{"id":1,"method":"session.new","params":{"capabilities":{}}}';
  expect(await command(client, { id: 1, text: begin })).toMatchObject({ type: 'success' });
  const create = '{"id":2,"method":"browsingContext.create","params":{"type":"tab"}}';
  const created = await command(client, { id: 2, text: create });
  return created.result?.context ?? '';
}

/** A command whose answer has so many bytes. */
function evaluation(id: number, context: string, bytes: number): string {
  const expression = `"x".repeat(${bytes})`;
  const params = { expression, target: { context }, awaitPromise: false };
  return JSON.stringify({ id, method: 'script.evaluate', params });
}

test('Puppeteer drives the session by WebDriver BiDi: pages, a title, a screenshot', async () => {
  const browser = await connect({
    browserWSEndpoint: site.bidiUrl('s1'),
    protocol: 'webDriverBiDi',
  });
  const pages = [await browser.newPage(), await browser.newPage()];
  for (const page of pages) {
    await page.goto(PAGE);
    expect(await page.title()).toBe('by BiDi');
    expect((await page.screenshot()).length).toBeGreaterThan(100);
  }
  expect(site.gateway.counters().open.cdp).toBe(1);
  expect(site.gateway.bidiPids()).toHaveLength(1);
  for (const page of pages) await page.close();
  await browser.disconnect();
  await until(() => site.gateway.counters().open.cdp === 0, 'the connection closed');
  await until(() => site.gateway.bidiPids().length === 0, 'the process ended');
  expect(site.accesses).toContain('s1 cdp');
});

test('what is no command is answered, and what is too large ends that connection alone', async () => {
  const client = await openSocket(site.bidiUrl('s1'));
  const other = await openSocket(site.bidiUrl('s1'));
  for (const text of ['no JSON', '[]', '7', '{"id":-1}', Buffer.from([0xff, 0xfe])])
    expect(await command(client, { id: null, text })).toMatchObject({ error: 'invalid argument' });
  const noMethod = { id: 3, text: '{"id":3,"params":{}}' };
  expect(await command(client, noMethod)).toMatchObject({ error: 'invalid argument' });
  const unknown = { id: 4, text: '{"id":4,"method":"no.such","params":{}}' };
  expect(await command(client, unknown)).toMatchObject({ error: 'unknown command' });
  expect(await command(client, status(5))).toMatchObject({ type: 'success' });
  // More than the process takes, in one frame: its length is enough.
  const tooLong = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x40, 0, 1, 0, 0, 0, 0]); // 4 MiB + 1
  Reflect.get(client.socket, '_socket').write(tooLong);
  await client.closed;
  expect(await command(other, status(6))).toMatchObject({ type: 'success' });
  other.socket.close();
  await until(() => site.gateway.bidiPids().length === 0, 'both processes ended');
});

test('parameters that the protocol does not allow are refused, without a path', async () => {
  const client = await openSocket(site.bidiUrl('s1'));
  await openPage(client);
  const wrong = [
    ['browsingContext.navigate', { context: 1 }],
    ['session.subscribe', { events: ['no.such'] }],
    ['session.subscribe', {}],
    ['script.evaluate', { expression: '1' }],
  ] as const;
  for (const [index, [method, params]] of wrong.entries()) {
    const id = 20 + index;
    const answer = await command(client, { id, text: JSON.stringify({ id, method, params }) });
    expect([method, answer.error]).toEqual([method, 'invalid argument']);
  }
  expect(client.messages.map(String).join()).not.toMatch(/file:|node_modules|stacktrace/);
  client.socket.close();
  await until(() => site.gateway.bidiPids().length === 0, 'the process ended');
});

test('session.end closes the connection of a session of BiDi, and leaves the browser', async () => {
  const client = await openSocket(`${site.bidiUrl('s1')}/session`);
  await openPage(client);
  const end = { id: 30, text: '{"id":30,"method":"session.end","params":{}}' };
  expect(await command(client, end)).toMatchObject({ type: 'success', result: {} });
  expect((await client.closed).code).toBe(1_000);
  const other = await openSocket(site.bidiUrl('s1'));
  expect(await command(other, status(31))).toMatchObject({ result: { ready: true } });
  other.socket.close();
  await until(() => site.gateway.bidiPids().length === 0, 'the process ended');
});

test('a client of a session of WebDriver needs no session.new, and prompts are as it has asked', async () => {
  for (const [behavior, handler] of [
    ['ignore', 'ignore'],
    ['dismiss and notify', 'dismiss'],
  ]) {
    const query = new URLSearchParams({
      capabilities: JSON.stringify({ unhandledPromptBehavior: behavior }),
    });
    const client = await openSocket(
      `${site.bidiUrl('s1')}/session/${'a'.repeat(32)}?${query.toString()}`,
    );
    expect(await command(client, status(1))).toMatchObject({ result: { ready: false } });
    const tree = { id: 2, text: '{"id":2,"method":"browsingContext.getTree","params":{}}' };
    const { result } = await command(client, tree);
    const [first] = (result as unknown as { contexts: { context: string }[] }).contexts;
    const events = '{"id":3,"method":"session.subscribe","params":{"events":["browsingContext"]}}';
    expect(await command(client, { id: 3, text: events })).toMatchObject({ type: 'success' });
    const expression = 'setTimeout(() => alert("hello"))';
    const params = { expression, target: { context: first?.context }, awaitPromise: false };
    client.socket.send(JSON.stringify({ id: 4, method: 'script.evaluate', params }));
    const opened = () => client.messages.map(String).find((text) => text.includes('PromptOpened'));
    await until(() => opened() !== undefined, 'the prompt');
    expect(JSON.parse(opened() ?? '')).toMatchObject({ params: { handler, message: 'hello' } });
    if (handler === 'ignore') {
      const accept = { context: first?.context, accept: true };
      const method = 'browsingContext.handleUserPrompt';
      const text = JSON.stringify({ id: 5, method, params: accept });
      expect(await command(client, { id: 5, text })).toMatchObject({ type: 'success' });
    }
    client.socket.close();
    await until(() => site.gateway.bidiPids().length === 0, 'the process ended');
  }
});

test('an answer of 16 MiB reaches a client that reads', async () => {
  const client = await openSocket(site.bidiUrl('s1'));
  const asked = { id: 9, text: evaluation(9, await openPage(client), 16 * MIB) };
  expect(await command(client, asked)).toMatchObject({ type: 'success' });
  client.socket.close();
  await until(() => site.gateway.bidiPids().length === 0, 'the process ended');
});

test('a client that asks for much and does not read is closed, and its process ends', async () => {
  // Neither its memory nor its heap ends the process: 112 MiB wait in buffers outside the heap.
  await using roomy = await startTestGateway({
    limits: { bidiMemoryBytes: 4_096 * MIB, bidiTotalBytes: Infinity },
  });
  serve(roomy);
  const client = await openSocket(roomy.bidiUrl('s1'));
  const context = await openPage(client);
  client.socket.pause();
  for (let id = 10; id < 24; id += 1) client.socket.send(evaluation(id, context, 8 * MIB));
  await until(() => roomy.gateway.bidiPids().length === 0, 'the process ended');
  client.socket.resume();
  await client.closed;
});

test('a process with more memory than it may have ends itself', async () => {
  await using small = await startTestGateway({ limits: { bidiMemoryBytes: 32 * MIB } });
  serve(small);
  const client = await openSocket(small.bidiUrl('s1'));
  await client.closed;
  await until(() => small.gateway.bidiPids().length === 0, 'the process ended');
});

test('the end of the session closes the connection and ends the process', async () => {
  const client = await openSocket(site.bidiUrl('s1'));
  expect(site.gateway.closeSession('org', 's1', 'expired')).toBe(1);
  expect((await client.closed).code).toBe(1006);
  await until(() => site.gateway.bidiPids().length === 0, 'the process ended');
});

test('a frozen process is killed, and its client’s connection closed', async () => {
  await using fast = await startTestGateway({ limits: { bidiSilentMs: 6_000 } });
  serve(fast);
  const client = await openSocket(fast.bidiUrl('s1'));
  const [pid = 0] = fast.gateway.bidiPids();
  kill(pid, 'SIGSTOP');
  await client.closed;
  await until(() => fast.gateway.bidiPids().length === 0, 'the process killed');
  expect(fast.logged.join()).toContain('a frozen BiDi process was killed');
});

test('processes that have too much memory together lose the largest one', async () => {
  await using small = await startTestGateway({ limits: { bidiTotalBytes: 1 * MIB } });
  serve(small);
  const client = await openSocket(small.bidiUrl('s1'));
  await client.closed;
  await until(() => small.gateway.bidiPids().length === 0, 'the process ended');
  expect(small.logged.join()).toContain('all together have too much memory');
});

test('an organization has only so many processes, and gets one back', async () => {
  await using small = await startTestGateway({ limits: { bidi: 3 } });
  serve(small);
  const first = await openSocket(small.bidiUrl('s1'));
  expect(await refusal(small.bidiUrl('s1'))).toMatchObject({
    status: 429,
    body: { error: 'RATE_LIMIT_EXCEEDED', context: { of: 'bidi of organization', limit: 1 } },
  });
  first.socket.close();
  await until(() => small.gateway.bidiPids().length === 0, 'the process ended');
  (await openSocket(small.bidiUrl('s1'))).socket.close();
});

test('a browser that does not understand the commands is 502', async () => {
  await using echo = await startSession({ limits: { bidiStartMs: 3_000 } });
  expect(await refusal(echo.bidiUrl('s1'))).toMatchObject({
    status: 502,
    body: { error: 'BROWSER_UNREACHABLE' },
  });
  await until(() => echo.gateway.bidiPids().length === 0, 'the process ended');
});
