import { features } from '#src/features/all.ts';
import { createLogger } from '#src/kernel/telemetry/logger.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import type { OpenApiDocument } from '#src/roles/api/docs/openapi-document.ts';
import { buildServer } from '#src/roles/api/http/server.ts';
import { registerRoutes } from '#src/roles/api/routes.ts';
import { loadRoutes } from './features.ts';

/** No request but the one for the document arrives, which needs no credential. */
const LIMITS = {
  requestsPerMinute: 1_000_000,
  concurrentSessions: 1,
  credits: 1,
  queueWeight: 1,
};

/** The OpenAPI document, as clients receive it, of an API that serves nothing else. */
export async function readOpenApi(): Promise<OpenApiDocument> {
  const { added } = await loadRoutes(features, () => ({}));
  await using server = buildServer({
    routes: (scope) => registerRoutes(scope, {} as ApiDependencies, added),
    gatekeeper: {
      authenticate: () => null,
      rateLimiter: { take: () => Promise.reject(new Error('no caller')), isShared: () => true },
      anonymous: LIMITS,
      operatorToken: null,
      now: () => Date.now(),
    },
    log: createLogger('silent'),
  });
  return (await server.inject('/api/openapi.json')).json<OpenApiDocument>();
}
