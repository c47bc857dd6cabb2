import { pino } from 'pino';
import { expect, test } from 'vitest';
import { startMetricsListener } from '#src/kernel/telemetry/metrics-listener.ts';
import { freePorts } from '#test/support/servers/ports.ts';

const token = 'token-of-the-scraper-0123456789';
const bearer = { authorization: `Bearer ${token}` };

/** A port that serves the given text as metrics, like that of a process without the API. */
async function listen(text: () => Promise<string>) {
  const [port = 0] = await freePorts(1);
  const log = pino({ level: 'silent' });
  const options = { metrics: { text }, token, listen: { host: '127.0.0.1', port }, log };
  const listener = await startMetricsListener(options);
  async function ask(path: string, headers = {}, method = 'GET') {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }
  return { ask, [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose]() };
}

test('METRICS_PORT serves metrics to requests with the token', async () => {
  await using port = await listen(async () => 'one 1\n');
  const admitted = await port.ask('/metrics', bearer);
  expect(admitted).toMatchObject({ status: 200, text: 'one 1\n' });
  expect(admitted.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(await port.ask('/metrics', bearer, 'HEAD')).toMatchObject({ status: 200, text: '' });
  const refused = await port.ask('/metrics');
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toBe('Bearer');
});

test('METRICS_PORT refuses other requests as the API does', async () => {
  await using port = await listen(() => Promise.reject(new Error('a bug')));
  const asked = [
    [port.ask('/metrics', { authorization: `Bearer ${token}x` }), 401, 'UNAUTHORIZED'],
    [port.ask('/', bearer), 404, 'NOT_FOUND'],
    [port.ask('/metrics', bearer, 'POST'), 405, 'METHOD_NOT_ALLOWED'],
    [port.ask('/metrics', bearer), 500, 'INTERNAL'],
  ] as const;
  for (const [answer, code, error] of asked) {
    const { status, text } = await answer;
    expect(status).toBe(code);
    expect(JSON.parse(text)).toEqual({
      error,
      code,
      message: expect.stringMatching(/./),
      context: expect.any(Object),
    });
  }
});
