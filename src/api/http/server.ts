import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { reject, type Rejected } from '#src/errors.ts';
import type { Log } from '#src/telemetry/logger.ts';
import type { Tracer } from '#src/telemetry/tracer.ts';
import {
  admission,
  authenticated,
  createCountByAddress,
  registerAdmission,
  type Admission,
  type Gatekeeper,
} from './admission.ts';
import { brokenHttpAnswers, refuseWithoutHost } from './malformed-requests.ts';
import { incomingOptions, type Incoming } from './tls.ts';
import { createErrorHandler, refuse, type CountRefusal } from './error-response.ts';
import type { Route } from './route.ts';
import { traceRequests } from './trace-requests.ts';

/** The largest request body; ours are a few hundred bytes. */
const BODY_BYTES_MAX = 64 * 1024;

/**
 * The HTTP server with its routes, not yet listening. Time-outs: 10 s for a request to arrive
 * whole, 72 s for an idle connection (above a load balancer's usual 60 s).
 */
export function buildServer(options: {
  routes: readonly Route[];
  gatekeeper: Gatekeeper;
  log: Log;
  incoming?: Incoming;
  countRefusal?: CountRefusal;
  tracer?: Tracer | null;
}): FastifyInstance {
  const { routes, gatekeeper, log, countRefusal, tracer = null } = options;
  const countByAddress = createCountByAddress(gatekeeper);
  const broken = brokenHttpAnswers(countByAddress, countRefusal);
  const server = Fastify({
    bodyLimit: BODY_BYTES_MAX,
    keepAliveTimeout: 72_000,
    routerOptions: { maxParamLength: 16 * 1024, ignoreTrailingSlash: false },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    ...broken.options,
    ...incomingOptions(options.incoming ?? {}, broken.options.http),
  });
  if (countRefusal !== undefined) server.decorate('countRefusal', countRefusal);
  const onError = createErrorHandler(log);
  server.setErrorHandler(onError);
  acceptEmptyJson(server);
  if (tracer !== null) traceRequests(server, routes, tracer);
  const hooks = registerAdmission(server, gatekeeper, countByAddress);
  server.addHook('onRequest', refuseWithoutHost);
  refuseUnknownPaths(server, routes, hooks);
  for (const route of routes) register(server, route, { hooks, now: gatekeeper.now });
  server.server.on('connect', broken.onConnect);
  // Node would answer an expectation that it does not know by itself; nobody has to mind one.
  server.server.on('checkExpectation', (request, response) =>
    server.server.emit('request', request, response),
  );
  return server;
}

function register(
  server: FastifyInstance,
  route: Route,
  { hooks, now }: { hooks: Admission; now: () => number },
): void {
  server.route({
    method: route.method,
    url: route.path,
    onRequest: hooks.hookFor(route),
    handler: (request, reply) => {
      const refusal = unknownParameters(route, request.query as Record<string, unknown>);
      if (refusal !== null) return refuseAdmitted(route, request, reply, { refusal, now });
      const caller = route.action === 'public' ? NOBODY : authenticated(request);
      return route.handle(request, reply, caller);
    },
  });
}

/** What of the query the route does not have: a misspelt filter must not pass for none. */
function unknownParameters(route: Route, query: Record<string, unknown>): Rejected | null {
  const known = route.query ?? {};
  const unknown = Object.keys(query).filter((name) => !Object.hasOwn(known, name));
  if (unknown.length === 0) return null;
  const context = { unknown, known: Object.keys(known) };
  return reject('INVALID_REQUEST', context, { message: 'A query parameter is not known.' });
}

/** Where the route admits the request itself, the limit's refusal still comes first. */
async function refuseAdmitted(
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  { refusal, now }: { refusal: Rejected; now: () => number },
): Promise<FastifyReply> {
  const overLimit = route.admitsItself === true ? await admission(request, now()) : null;
  return refuse(reply, overLimit ?? refusal);
}

/** In a hook, not in a handler: what the body is does not matter where nobody will read it. */
function refuseUnknownPaths(
  server: FastifyInstance,
  routes: readonly Route[],
  hooks: Admission,
): void {
  server.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    const answer = (refusal: Rejected | null) =>
      refuse(reply, refusal ?? noRoute(routes, request, reply));
    void hooks.count(request).then(answer, done);
  });
}

function noRoute(routes: readonly Route[], request: FastifyRequest, reply: FastifyReply): Rejected {
  const { method, url } = request;
  const allow = methodsOf(routes, url.split('?', 1)[0] ?? '');
  if (allow.length === 0) return reject('NOT_FOUND', { path: url });
  void reply.header('allow', allow.join(', '));
  return reject('METHOD_NOT_ALLOWED', { method, allow });
}

/** Stands in for the caller of public routes, which ask nobody who they are. */
const NOBODY = {
  organizationId: '-',
  role: 'viewer' as const,
  userId: '-',
  limits: { requestsPerMinute: 0, concurrentSessions: 0, credits: 0 },
};

/** JSON as always, but an empty body is none: a POST without fields is a request with defaults. */
function acceptEmptyJson(server: FastifyInstance): void {
  const parseJson = server.getDefaultJsonParser('error', 'error');
  server.removeContentTypeParser(['application/json', 'text/plain']);
  server.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined);
    else void parseJson(request, body as string, done);
  });
}

/** The methods that a path takes. */
function methodsOf(routes: readonly Route[], path: string): string[] {
  const segments = path.split('/');
  return routes
    .filter((route) => {
      const pattern = route.path.split('/');
      return (
        pattern.length === segments.length &&
        pattern.every((part, index) => part.startsWith(':') || part === segments[index])
      );
    })
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
}
