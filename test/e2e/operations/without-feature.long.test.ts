import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { features } from '#src/features/all.ts';
import type { FeatureApi } from '#src/features/feature.ts';
import { readConfig } from '#src/kernel/config/config.ts';
import { createLogger } from '#src/kernel/telemetry/logger.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import { buildServer } from '#src/roles/api/http/server.ts';
import { start } from '#src/start/start.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { settingsOf } from '#test/support/service/service-process.ts';

/** The whole service without one feature after the other: nothing else of it is missing. */

const KEY = 'bss_dev_without_a_feature';
const LIMITS = { requestsPerMinute: 1, concurrentSessions: 1, credits: 1, queueWeight: 1 };
type Route = { method: string; path: string };

/** What the feature answers, with made-up parameters. */
async function routesOf(api: FeatureApi): Promise<Route[]> {
  const routes: Route[] = [];
  await using server = buildServer({
    routes(scope) {
      scope.addHook('onRoute', ({ method, url }) => {
        const path = url.replaceAll(/:\w+|\*/g, 'x');
        for (const one of [method].flat()) routes.push({ method: one, path });
      });
      scope.register(async (own) => api.routes(own.withTypeProvider(), {} as ApiDependencies, {}));
    },
    gatekeeper: {
      authenticate: () => null,
      rateLimiter: { take: () => Promise.reject(new Error('no caller')), isShared: () => true },
      anonymous: LIMITS,
      operatorToken: null,
      now: () => 0,
    },
    log: createLogger('silent'),
  });
  await server.ready();
  return routes.filter(({ method }) => ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].includes(method));
}

/** Asks the API of the service at this address. */
function clientOf(url: string) {
  return async function ask(method: string, path: string, body?: object) {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${url}${path}`, { method, headers, ...sent });
    const text = await answer.text();
    return { status: answer.status, body: text.startsWith('{') ? JSON.parse(text) : text };
  };
}

/** A session's life, as every client has it. */
async function liveOnce(ask: ReturnType<typeof clientOf>): Promise<void> {
  const created = await ask('POST', '/api/sessions', { session_name: 'alone', labels: { a: 'b' } });
  expect(created).toMatchObject({ status: 201, body: { status: 'active' } });
  const path = `/api/sessions/${created.body.id}`;
  expect((await ask('GET', path)).body).toMatchObject({ status: 'active' });
  expect((await ask('POST', `${path}/extend`, { duration: '10m' })).status).toBe(200);
  expect((await ask('GET', '/api/sessions?label=a%3Db')).body.sessions).toHaveLength(1);
  expect((await ask('DELETE', path)).status).toBe(200);
  const history = (await ask('GET', `${path}/history`)).body;
  expect(JSON.stringify(history)).toContain('session.stop-requested');
}

describe.each(features.map(({ name }) => name))('a service without the feature %s', (name) => {
  test('runs sessions, and has none of its routes', async () => {
    await using stack = new AsyncDisposableStack();
    const folder = stack.use(await scratchDir());
    const settings = await settingsOf(folder.path, { DEV_API_KEY: KEY });
    const config = readConfig(settings);
    const others = features.filter((feature) => feature.name !== name);
    const log = pino({ level: 'silent' });
    const { signal } = new AbortController();
    const service = stack.use(await start(config, log, () => undefined, signal, others));
    expect(await service.warm()).toBeNull();
    const ask = clientOf(service.apiUrl ?? '');
    await liveOnce(ask);

    const load = features.find((feature) => feature.name === name)?.api;
    const gone = load === undefined ? [] : await routesOf(await load());
    if (load !== undefined) expect(gone.length).toBeGreaterThan(0);
    for (const { method, path } of gone)
      expect([method, path, await ask(method, path)]).toMatchObject([
        method,
        path,
        { status: 404, body: { error: 'NOT_FOUND' } },
      ]);
  });
});
