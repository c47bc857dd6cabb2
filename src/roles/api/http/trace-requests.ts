import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isTraceparent, type Span, type Tracer } from '#src/kernel/telemetry/tracer.ts';

type Traced = FastifyRequest & { span?: Span };

/**
 * A span for each request to a route that is not public, as a child of the caller's span if the
 * request names one. Without a tracer no hook is installed and nothing runs.
 */
export function traceRequests(server: FastifyInstance, tracer: Tracer): void {
  server.decorateRequest('span', undefined);

  server.addHook('onRequest', (request, _reply, done) => {
    const { url, config } = request.routeOptions;
    const isTraced = url !== undefined && config.action !== 'public';
    if (isTraced) (request as Traced).span = beginRequest(tracer, request, url);
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

/** The request's span; null if it has none. */
export function spanOf(request: FastifyRequest): Span | null {
  return (request as Traced).span ?? null;
}

/**
 * The traceparent for the request's events: that of this service's span, or the caller's unchanged.
 */
export function traceparentOf(request: FastifyRequest): string | undefined {
  const span = spanOf(request);
  if (span !== null) return span.traceparent;
  const given = request.headers['traceparent'];
  return isTraceparent(given) ? given : undefined;
}
