import { once } from 'node:events';
import { createServer, request as send, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { projectionId } from '#projections/projection.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { liveServers, servers } from '#projections/servers.ts';
import type { Wanted } from '#src/features/webdriver/capabilities.ts';
import { createDrivers } from '#src/features/webdriver/drivers.ts';
import type { InnerAnswer, InnerRequests } from '#src/features/webdriver/inner-requests.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { throughDoor } from '#src/roles/api/http/door.ts';
import { newSession } from '#src/features/webdriver/new-session.ts';
import { eventually } from '#test/support/service/service.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';

const MINUTE_MS = 60_000;
const one = { requestsPerMinute: 1, concurrentSessions: 9, credits: 99_999, queueWeight: 1 };

const idOf = ({ id }: { id: string }) => id;

/** A service whose callers may do one thing a minute, and that reaches no gateway. */
async function startMeagre() {
  const app = await startApp(undefined, { limits: one });
  onTestFinished(() => app[Symbol.asyncDispose]());
  return app;
}

describe('a caller whose rate limit is used up by a create', () => {
  test('leaves no session behind where no driver answers', async () => {
    const app = await startMeagre();
    const begun = await app.request('POST', '/wd/hub/session', { capabilities: {} });
    expect(begun).toMatchObject({ status: 500, body: { value: { error: 'session not created' } } });
    expect(begun.body.value.message).toMatch(/does not answer|No gateway/);
    app.pass(MINUTE_MS);
    const [id] = (await app.request('GET', '/api/sessions')).body.sessions.map(idOf);
    await eventually(async () => {
      app.pass(MINUTE_MS);
      const { body } = await app.request('GET', `/api/sessions/${id}`);
      return body.status === 'stopped' && body.ended_reason === 'user';
    }, 'its end');
  });

  test('can quit', async () => {
    const app = await startMeagre();
    const created = await app.request('POST', '/api/sessions', {});
    expect(created.status).toBe(201);
    expect((await app.request('GET', '/api/sessions')).status).toBe(429);
    const path = `/wd/hub/session/${created.body.id}.${'0'.repeat(32)}`;
    expect(await app.request('DELETE', path)).toEqual({ status: 200, body: { value: null } });
  });
});

test('commands that the API refuses cost a unit each, and are refused with the others then', async () => {
  const limits = { ...one, requestsPerMinute: 5 };
  const app = await startApp(undefined, { limits });
  onTestFinished(() => app[Symbol.asyncDispose]());
  const session = `/wd/hub/session/ses_AAAAAAAAAAAAAAAAAAAAAA.${'0'.repeat(32)}`;
  const bad = [
    () => app.request('POST', '/wd/hub/session', { capabilities: { alwaysMatch: 7 } }),
    () => app.request('GET', '/wd/hub/session/none/title'),
    () => app.request('POST', `${session}/a%20command!`, {}),
    () => app.request('DELETE', '/wd/hub/session/none'),
    () => app.request('GET', '/wd/hub/nothing'),
  ];
  for (const ask of bad) expect((await ask()).status).not.toBe(429);
  for (const ask of bad) expect((await ask()).status).toBe(429);
  expect((await app.request('GET', '/api/sessions')).status).toBe(429);
});

test('a create waits for its browser no longer than its door lets it', async () => {
  await using app = await startApp();
  const create = () => app.request('POST', '/api/sessions', {});
  const answers = [
    await create(),
    await throughDoor({ via: 'webdriver', createWaitMs: 0 }, create),
    await throughDoor({ via: 'webdriver', createWaitMs: 600_000 }, create),
  ];
  expect(answers.map(({ body }) => body.status)).toEqual(['active', 'creating', 'active']);
});

test('a version that no live server has makes no session', async () => {
  const server = { id: 'srv_1', status: 'live', browser: { version: '150.0.7871.12' } };
  await using app = await startApp((views) => ({
    ...views,
    page: (projection, query, ...rest) =>
      query.lists[0] === liveServers && projection === projectionId(servers)
        ? Promise.resolve({ items: JSON.stringify(server), total: 1, checkpoint: 1 })
        : views.page(projection, query, ...rest),
  }));
  const capabilities = { alwaysMatch: { browserVersion: '99' } };
  const begun = await app.request('POST', '/wd/hub/session', { capabilities });
  const message = expect.stringContaining('browserVersion is 150.0.7871.12 here');
  expect(begun).toMatchObject({
    status: 500,
    body: { value: { error: 'session not created', message } },
  });
  expect((await app.request('GET', '/api/sessions')).body.sessions).toEqual([]);
});

test('a session is refused, and none is made, while the read model is away', async () => {
  let isAway = false;
  await using app = await startApp((views) => ({
    ...views,
    page: (...asked) =>
      isAway ? Promise.reject(new Unavailable('read-model')) : views.page(...asked),
  }));
  isAway = true;
  const begun = await app.request('POST', '/wd/hub/session', { capabilities: {} });
  expect(begun).toMatchObject({
    status: 503,
    body: { value: { error: 'unknown error', data: { error: 'UNAVAILABLE' } } },
  });
  isAway = false;
  expect((await app.request('GET', '/api/sessions')).body.sessions).toEqual([]);
});

test('a command whose path has dots for a segment is none', async () => {
  const app = await startApp();
  onTestFinished(() => app[Symbol.asyncDispose]());
  const at = await app.listen();
  const session = `/wd/hub/session/ses_AAAAAAAAAAAAAAAAAAAAAA.${'0'.repeat(32)}`;
  const get = async (path: string) => {
    const headers = { authorization: 'Bearer any' };
    // Sent as it is: fetch would take the dots out.
    const sent = send(at, { path: session + path, headers }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const { value } = JSON.parse(await text(response)) as { value: { error: string } };
    return `${response.statusCode} ${value.error}`;
  };
  const dots = ['/a/../url', '/a/%2e%2e/url', '/%2E./url', '/.%2e', '/%2e', '/a//b', '/', '/a;b'];
  for (const path of dots) expect([path, await get(path)]).toEqual([path, '404 unknown command']);
  // This one is sent on.
  expect(await get('/element/f.1.d.2.e.3/attribute/a..b')).toBe('502 unknown error');
});

const answerOf = (status: number, body = {}): InnerAnswer => ({
  status,
  body,
  retryAfter: undefined,
});

/** A create waits for its browser. */
const CREATE_MS = 20;
const NOTHING: Wanted = {
  ...{ session: {}, driver: {}, majorVersion: null, isBidi: false },
  ...{ device: null, echoed: {}, ignored: [] },
};
const PATIENCE = { activeMs: 60_000, answerMs: 120_000 };

/**
 * What a New Session asks of the API, which answers so in turn, and of a driver.
 * @param driver its answer; null: none comes
 */
async function begin(
  answers: { GET: InnerAnswer[]; DELETE: InnerAnswer[] },
  driver: string | null,
  patience = PATIENCE,
  wanted: Partial<Wanted> = {},
) {
  const gateway = createServer((request, response) => {
    void text(request).then((body) => {
      commands.push({ path: request.url ?? '', body: JSON.parse(body) });
      return driver === null ? null : response.end(driver);
    });
  });
  gateway.listen(0, '127.0.0.1');
  await once(gateway, 'listening');
  onTestFinished(() => {
    gateway.close();
    gateway.closeAllConnections();
  });
  using drivers = createDrivers();
  const asked: string[] = [];
  const commands: { path: string; body: unknown }[] = [];
  const logged: object[] = [];
  const inner: InnerRequests = async (method) => {
    asked.push(method);
    if (method === 'POST') {
      await sleep(CREATE_MS);
      return answerOf(201, { id: 'ses_1', status: 'creating' });
    }
    const next = answers[method].shift();
    if (next === undefined) throw new Error(`one ${method} too many`);
    return next;
  };
  const { port } = gateway.address() as AddressInfo;
  const answer = await newSession(
    { ...NOTHING, ...wanted },
    {
      inner,
      drivers,
      driverUrlOf: () => `http://127.0.0.1:${port}`,
      gone: new AbortController().signal,
      log: { warn: (fact: unknown) => logged.push(fact as object) },
    },
    patience,
  );
  return { answer, asked, logged, commands };
}

describe('a New Session', () => {
  const limited = answerOf(429, { error: 'RATE_LIMIT_EXCEEDED' });
  const unavailable = answerOf(503, { error: 'UNAVAILABLE' });
  const active = answerOf(200, { id: 'ses_1', status: 'active' });
  const queued = answerOf(200, { id: 'ses_1', status: 'queued' });

  test('whose look is refused by a limit looks again', async () => {
    const driver = { sessionId: '0'.repeat(32), capabilities: { browserVersion: '1.2' } };
    const looks = { GET: [limited, unavailable, active], DELETE: [] };
    const { answer, asked } = await begin(looks, JSON.stringify({ value: driver }));
    expect(answer.status).toBe(200);
    expect(asked).toEqual(['POST', 'GET', 'GET', 'GET']);
  });

  test('gives its window the metrics of a device, and tells what had no effect', async () => {
    const driver = { sessionId: '0'.repeat(32), capabilities: { browserVersion: '1.2' } };
    const device = { width: 360, height: 640, pixelRatio: 3, isMobile: true, isTouch: true };
    const { answer, commands } = await begin(
      { GET: [active], DELETE: [] },
      JSON.stringify({ value: driver }),
      PATIENCE,
      { device, echoed: { 'se:downloadsEnabled': true }, ignored: ['--mute-audio'] },
    );
    const path = `/session/${driver.sessionId}/goog/cdp/execute`;
    const metrics = { width: 360, height: 640, deviceScaleFactor: 3, mobile: true };
    expect(commands.slice(1)).toEqual([
      { path, body: { cmd: 'Emulation.setDeviceMetricsOverride', params: metrics } },
      { path, body: { cmd: 'Emulation.setTouchEmulationEnabled', params: { enabled: true } } },
    ]);
    expect(answer.body.value).toMatchObject({
      capabilities: { 'se:downloadsEnabled': true, 'bss:ignored': ['--mute-audio'] },
    });
  });

  test('answers where BiDi is, with what holds there, if that was asked for', async () => {
    const sessionId = '0'.repeat(32);
    const capabilities = { browserVersion: '1.2', unhandledPromptBehavior: 'ignore' };
    const driver = JSON.stringify({ value: { sessionId, capabilities } });
    const bidi_url = 'ws://gateway:1/devtools/bidi/ticket';
    const looks = () => ({
      GET: [answerOf(200, { id: 'ses_1', status: 'active', bidi_url })],
      DELETE: [],
    });
    const asked = await begin(looks(), driver, PATIENCE, { isBidi: true });
    const { capabilities: answered } = asked.answer.body.value as {
      capabilities: Record<string, string>;
    };
    const address = new URL(answered['webSocketUrl'] ?? '');
    expect(`${address.origin}${address.pathname}`).toBe(`${bidi_url}/session/${sessionId}`);
    expect(JSON.parse(address.searchParams.get('capabilities') ?? '')).toEqual({
      unhandledPromptBehavior: 'ignore',
    });
    const not = await begin(looks(), driver, PATIENCE, { isBidi: false });
    expect(JSON.stringify(not.answer.body)).not.toContain('webSocketUrl');
  });

  test('that fails stops its session, however often that is refused', async () => {
    const refused = JSON.stringify({ value: { message: 'no' } });
    const stops = { GET: [active], DELETE: [limited, unavailable, answerOf(200)] };
    const { answer, asked, logged } = await begin(stops, refused);
    expect(answer.status).toBe(500);
    expect(asked).toEqual(['POST', 'GET', 'DELETE', 'DELETE', 'DELETE']);
    expect(logged).toEqual([]);
  });

  test('whose time is over while its create waits looks no more, and stops its session', async () => {
    const looks = { GET: [], DELETE: [answerOf(200)] };
    const { answer, asked } = await begin(looks, null, { ...PATIENCE, activeMs: 0 });
    expect(answer.body.value).toMatchObject({
      error: 'session not created',
      message: expect.stringMatching(/^No browser was free in time/),
    });
    expect(asked).toEqual(['POST', 'DELETE']);
  });

  test('says that its driver was too late', async () => {
    const looks = { GET: [queued, active], DELETE: [answerOf(200)] };
    const { answer } = await begin(looks, null, { ...PATIENCE, answerMs: 1_500 });
    expect(answer.body.value).toMatchObject({
      error: 'session not created',
      message: 'The session’s driver has not answered in time; try again later.',
    });
  });

  test('says in the log which session it could not stop', async () => {
    const refused = JSON.stringify({ value: { message: 'no' } });
    const stops = { GET: [active], DELETE: Array.from({ length: 10 }, () => unavailable) };
    const { answer, logged } = await begin(stops, refused);
    expect(answer.status).toBe(500);
    expect(logged).toEqual([{ sessionId: 'ses_1', status: 503, error: 'UNAVAILABLE' }]);
  });
});
