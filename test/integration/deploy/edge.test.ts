import { expect, test } from 'vitest';
import { registerRoutes } from '#src/roles/api/routes.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import { buildServer } from '#src/roles/api/http/server.ts';
import { readerSilenceMs, wayOf, ways } from '#src/start/edge/ways.ts';
import { features } from '#src/features/all.ts';
import { loadRoutes } from '#src/start/features.ts';
import { parseRoute } from '#src/roles/gateway/routes.ts';
import { createLogger } from '#src/kernel/telemetry/logger.ts';
import { readText } from '#test/support/sources/source-files.ts';

/** What proxies let pass, against what the routes of the API and the gateway take. */

type Route = { url: string; bodyLimit: number };

async function apiRoutes(): Promise<Route[]> {
  const routes: Route[] = [];
  const { added } = await loadRoutes(features, () => ({}));
  const limits = { requestsPerMinute: 1, concurrentSessions: 1, credits: 1, queueWeight: 1 };
  await using server = buildServer({
    routes(scope) {
      const usual = scope.initialConfig.bodyLimit ?? 0;
      scope.addHook('onRoute', ({ url, bodyLimit }) => {
        routes.push({ url, bodyLimit: bodyLimit ?? usual });
      });
      registerRoutes(scope, {} as ApiDependencies, added);
    },
    gatekeeper: {
      authenticate: () => null,
      rateLimiter: { take: () => Promise.reject(new Error('no caller')), isShared: () => true },
      anonymous: limits,
      operatorToken: null,
      now: () => 0,
    },
    log: createLogger('silent'),
  });
  await server.ready();
  return routes;
}

test('a body that a route takes passes, and one that is somewhat larger, so that the API refuses it', async () => {
  const routes = await apiRoutes();
  expect(routes.length).toBeGreaterThan(60);
  expect(Math.min(...routes.map(({ bodyLimit }) => bodyLimit))).toBeGreaterThan(0);
  const cut = routes.filter(({ url, bodyLimit }) => {
    const { to, bodyBytesMax } = wayOf(url.replaceAll(/:\w+/g, 'x'));
    return to !== 'api' || (bodyBytesMax !== null && bodyBytesMax <= bodyLimit);
  });
  expect(cut).toEqual([]);
});

const ticket = 'A'.repeat(40);
test.each([
  `/devtools/browser/${ticket}`,
  `/devtools/page/${ticket}/ABC`,
  `/devtools/bidi/${ticket}`,
  `/devtools/debugger-address`,
  '/json',
  '/json/version',
  '/json/new',
  `/vnc/${ticket}/websockify`,
  '/viewer/core/rfb.js',
])('%s leads to a gateway', (path) => {
  expect(parseRoute({ url: path, headers: { 'x-bss-ticket': ticket } })).not.toBeNull();
  expect(wayOf(path).to).toBe('gateway');
});

test('the Ingress leads the same paths to the gateway', () => {
  const [, listed = ''] = /range list ((?:"[^"]+" ?)+)/.exec(
    readText('deploy/helm/templates/ingress.yaml'),
  ) ?? [''];
  const prefixes = [...listed.matchAll(/"\/(\w+)"/g)].map(([, name]) => name);
  expect(prefixes.toSorted()).toEqual(['devtools', 'json', 'viewer', 'vnc']);
  for (const name of prefixes) expect(wayOf(`/${name}/x`).to).toBe('gateway');
});

test('a proxy is more patient than clients that read slowly, and no way is without a bound', () => {
  expect(readerSilenceMs).toBeGreaterThan(60_000);
  for (const { answerSilenceMs, bodySilenceMs } of ways) {
    expect(answerSilenceMs).toBeGreaterThan(60_000);
    expect(bodySilenceMs).toBeGreaterThanOrEqual(10_000);
  }
});
