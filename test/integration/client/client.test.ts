import { describe, expect, it, test } from 'vitest';
import { connect, NoAnswer, ServiceError } from '#src/apps/client/client.ts';
import { sourceFiles } from '#test/support/sources/source-files.ts';
import {
  hangUp,
  json,
  refuse,
  sayNothing,
  saySome,
  startScripted,
  type Asked,
} from '#test/support/clients/scripted-service.ts';

const SESSION = { id: 'ses_1', status: 'active', cdp_url: 'ws://h/devtools/browser/t' };

describe('a request', () => {
  it('to create a session is retried with the same idempotency key until it is answered', async () => {
    await using service = await startScripted([
      hangUp,
      saySome,
      refuse(503, 'UNAVAILABLE', { 'retry-after': '0' }),
      json(201, SESSION),
    ]);
    const session = await service.client.sessions.create({ duration: '30m' });
    expect(session).toMatchObject(SESSION);
    expect(service.asked.length).toBe(4);
    const [first] = service.asked;
    expect(first).toMatchObject({
      method: 'POST',
      url: '/api/sessions',
      body: '{"duration":"30m"}',
    });
    expect(first?.headers).toMatchObject({
      authorization: 'Bearer bss_acme_key',
      'idempotency-key': expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    for (const { headers, body } of service.asked)
      expect([headers['idempotency-key'], body]).toEqual([
        first?.headers['idempotency-key'],
        first?.body,
      ]);
  });

  it('has a new idempotency key, or the caller’s', async () => {
    const answers = [json(201, SESSION), json(201, SESSION), json(201, SESSION)];
    await using service = await startScripted(answers);
    const { sessions } = service.client;
    await sessions.create();
    await sessions.create();
    await sessions.create({}, { idempotencyKey: 'mine' });
    const keys = service.asked.map(({ headers }) => headers['idempotency-key']);
    expect([new Set(keys).size, keys[2]]).toEqual([3, 'mine']);
  });

  it('that is refused for good is not retried; the error has the reason', async () => {
    await using service = await startScripted([refuse(402, 'INSUFFICIENT_CREDITS')]);
    const failure = await service.client.sessions.create().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ServiceError);
    expect(failure).toMatchObject({
      name: 'ServiceError',
      error: 'INSUFFICIENT_CREDITS',
      code: 402,
      context: { of: 'INSUFFICIENT_CREDITS' },
      retryAfterMs: null,
    });
    expect(service.asked.length).toBe(1);
  });

  it('with a long Retry-After fails at once instead of waiting', async () => {
    const limited = refuse(429, 'RATE_LIMIT_EXCEEDED', { 'retry-after': '55' });
    await using service = await startScripted([limited]);
    const failure = await service.client.sessions.get('ses_1').catch((error: unknown) => error);
    expect(failure).toMatchObject({ error: 'RATE_LIMIT_EXCEEDED', retryAfterMs: 55_000 });
    expect(service.asked.length).toBe(1);
  });

  it('that is never answered fails after its retries; the error has its idempotency key', async () => {
    // Long enough for the first request to arrive on a busy machine.
    const options = { timeoutMs: 1_000, retriesMax: 1 };
    await using service = await startScripted([sayNothing, sayNothing, sayNothing], options);
    const failure = await service.client.sessions
      .create({}, { idempotencyKey: 'k1' })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(NoAnswer);
    expect(failure).toMatchObject({ name: 'NoAnswer', idempotencyKey: 'k1' });
    expect(service.asked.length).toBe(2);
  });

  it('is cancelled by its signal, during a try and between two', async () => {
    for (const answer of [sayNothing, hangUp]) {
      await using service = await startScripted([answer, answer, answer, answer]);
      const stop = new AbortController();
      const asking = service.client.sessions.get('ses_1', { signal: stop.signal });
      await expect.poll(() => service.asked.length).toBe(1);
      stop.abort(new Error('enough'));
      await expect(asking).rejects.toThrow('enough');
      expect(service.asked.length).toBe(1);
    }
  });

  it('escapes ids and query parameters', async () => {
    await using service = await startScripted([json(200, {}), json(200, {})]);
    const { sessions } = service.client;
    await sessions.list({ limit: 5, status: 'active', labels: { team: 'a b', tier: 'x=&' } });
    await sessions.access('a/b?c');
    expect(service.asked.map(({ url }) => url)).toEqual([
      '/api/sessions?limit=5&status=active&label=team%3Da+b&label=tier%3Dx%3D%26',
      '/api/sessions/a%2Fb%3Fc/access',
    ]);
  });
});

test('a session that does not become active is stopped, and create throws', async () => {
  await using service = await startScripted([
    json(201, { ...SESSION, status: 'queued' }),
    json(200, { ...SESSION, status: 'queued' }),
    sayNothing,
    json(200, { message: 'stopped', session_id: 'ses_1' }),
  ]);
  const creating = service.client.sessions.create({}, { waitMs: 100 });
  await expect(creating).rejects.toMatchObject({ error: 'SESSION_NOT_READY', code: 409 });
  expect(service.asked.at(-1)).toMatchObject({ method: 'DELETE', url: '/api/sessions/ses_1' });
});

describe('a create without an answer', () => {
  const made = json(201, { ...SESSION, status: 'creating' });
  const stopped = json(200, { message: 'stopped', session_id: 'ses_1' });

  /** The create, the same with its key, and the end of what it made. */
  function expectTakenBack([create, again, stop, ...more]: Asked[]) {
    const key = create?.headers['idempotency-key'];
    expect(again).toMatchObject({
      method: 'POST',
      url: '/api/sessions',
      body: '{"duration":"30m"}',
      headers: { 'idempotency-key': key, prefer: 'respond-async' },
    });
    expect(stop).toMatchObject({ method: 'DELETE', url: '/api/sessions/ses_1' });
    expect(more).toEqual([]);
  }

  it('because it is aborted leaves no session', async () => {
    await using service = await startScripted([sayNothing, made, stopped]);
    const stop = new AbortController();
    const { signal } = stop;
    const creating = service.client.sessions.create({ duration: '30m' }, { signal });
    await expect.poll(() => service.asked.length).toBe(1);
    stop.abort(new Error('enough'));
    await expect(creating).rejects.toThrow('enough');
    expectTakenBack(service.asked);
  });

  it('because it was lost leaves no session', async () => {
    await using service = await startScripted([hangUp, made, stopped], { retriesMax: 0 });
    const creating = service.client.sessions.create({ duration: '30m' }, { waitMs: 0 });
    await expect(creating).rejects.toThrow(NoAnswer);
    expectTakenBack(service.asked);
  });

  it('has the error of the create also where its session cannot be taken back', async () => {
    const answers = [hangUp, refuse(401, 'UNAUTHORIZED')];
    await using service = await startScripted(answers, { retriesMax: 0 });
    await expect(service.client.sessions.create()).rejects.toThrow(NoAnswer);
    expect(service.asked.length).toBe(2);
  });

  it('is left to a caller whose key it has', async () => {
    await using service = await startScripted([hangUp], { retriesMax: 0 });
    const creating = service.client.sessions.create({}, { idempotencyKey: 'mine' });
    await expect(creating).rejects.toMatchObject({ idempotencyKey: 'mine' });
    expect(service.asked.length).toBe(1);
  });

  it('asks for nothing where its signal was aborted before', async () => {
    await using service = await startScripted([]);
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(service.client.sessions.create({}, { signal })).rejects.toThrow('enough');
    expect(service.asked).toEqual([]);
  });
});

test('with waitMs 0 a session is returned before it is active', async () => {
  await using service = await startScripted([json(201, { ...SESSION, status: 'queued' })]);
  const session = await service.client.sessions.create({}, { waitMs: 0 });
  expect(session.status).toBe('queued');
  expect(service.asked[0]?.headers.prefer).toBe('respond-async');
});

test('a session is stopped when its scope is left, also by an error', async () => {
  const answers = [json(201, SESSION), json(200, {}), json(201, SESSION), json(200, {})];
  await using service = await startScripted(answers);
  {
    await using session = await service.client.sessions.create();
    expect(session.id).toBe('ses_1');
  }
  const failing = async () => {
    await using session = await service.client.sessions.create();
    throw new Error(`in the work with ${session.id}`);
  };
  await expect(failing()).rejects.toThrow('in the work with ses_1');
  expect(service.asked.map(({ method }) => method)).toEqual(['POST', 'DELETE', 'POST', 'DELETE']);
});

it('the client imports only types of Node, of packages and of the service', () => {
  // The program bss-mcp runs in Node alone, and no module of the client imports it.
  const isProgram = (path: string) => path.startsWith('src/apps/client/mcp/');
  const files = sourceFiles()
    .filter(({ path }) => path.startsWith('src/apps/client/'))
    .filter(({ path }) => !isProgram(path));
  expect(files.flatMap((file) => file.imports).filter(isProgram)).toEqual([]);
  expect(files.length).toBeGreaterThan(5);
  const pattern = /^(?:import|export) [^;]*? from '[^']+'/gm;
  const imports = files.flatMap(({ code }) => [...code.matchAll(pattern)].map(([one]) => one));
  expect(imports.length).toBeGreaterThan(10);
  const values = imports.filter((one) => !/^(?:import|export) type /.test(one));
  expect(values.filter((one) => !/ from '\.\/[a-z-]+\.ts'$/.test(one))).toEqual([]);
});

test('connect calls connectOverCDP of Playwright and connect of Puppeteer', async () => {
  const playwright = { connectOverCDP: async (address: string) => `playwright at ${address}` };
  const puppeteer = {
    connect: async (options: { browserWSEndpoint: string }) =>
      `puppeteer at ${options.browserWSEndpoint}`,
  };
  expect(await connect(playwright, SESSION)).toBe(`playwright at ${SESSION.cdp_url}`);
  expect(await connect(puppeteer, SESSION)).toBe(`puppeteer at ${SESSION.cdp_url}`);
  expect(() => connect(puppeteer, { cdp_url: null })).toThrow(TypeError);
});
