import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isTraceparent, type Span, type Tracer } from '#src/telemetry/tracer.ts';
import type { Route } from './route.ts';

type Traced = FastifyRequest & { span?: Span };

/**
 * A span for each request to a route that is not public, under the caller's own where it says one.
 * Only where there is a tracer: else no hook is there, and nothing runs for it.
 */
export function traceRequests(
  server: FastifyInstance,
  routes: readonly Route[],
  tracer: Tracer,
): void {
  const paths = new Set(routes.filter(({ action }) => action !== 'public').map(({ path }) => path));
  server.decorateRequest('span', undefined);

  server.addHook('onRequest', (request, _reply, done) => {
    const route = request.routeOptions.url ?? '';
    if (paths.has(route)) (request as Traced).span = beginRequest(tracer, request, route);
    done();
  });
  server.addHook('onResponse', (request, reply, done) => {
    const { span } = request as Traced;
    span?.note({ 'http.response.status_code': reply.statusCode });
    if (reply.statusCode >= 500) span?.fail(reply.statusCode);
    span?.end();
    done();
  });
}

function beginRequest(tracer: Tracer, request: FastifyRequest, route: string): Span {
  const parent = request.headers['traceparent'];
  return tracer.begin(`${request.method} ${route}`, {
    kind: 'server',
    parent: isTraceparent(parent) ? parent : undefined,
    attributes: { 'http.request.method': request.method, 'http.route': route },
  });
}

/** The request's span; null where it has none. */
export function spanOf(request: FastifyRequest): Span | null {
  return (request as Traced).span ?? null;
}

/** What the request's events are to say of its trace: ours, or as it came. */
export function traceparentOf(request: FastifyRequest): string | undefined {
  const span = spanOf(request);
  if (span !== null) return span.traceparent;
  const given = request.headers['traceparent'];
  return isTraceparent(given) ? given : undefined;
}
