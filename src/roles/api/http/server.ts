import swagger from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { lingerAtClose } from '#src/kernel/http/linger.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Tracer } from '#src/kernel/telemetry/tracer.ts';
import { openApiOptions } from '../docs/openapi.ts';
import { createCountByAddress, registerAdmission, type Gatekeeper } from './admission.ts';
import { decodeBodies, readText } from './body-coding.ts';
import { boundConnections } from './connections.ts';
import type { Dialect } from './dialect.ts';
import { noteDoors } from './door.ts';
import { brokenHttpAnswers, refuseWithoutHost } from './malformed-requests.ts';
import { incomingOptions, type Incoming } from './tls.ts';
import { createErrorHandler, sendRejection, type CountRefusal } from './error-response.ts';
import type { ApiServer } from './route.ts';
import { boundSlowReaders } from './slow-readers.ts';
import { traceRequests } from './trace-requests.ts';
import { compileValidator } from './validation.ts';

/** The largest request body; those of this API are a few hundred bytes. */
const BODY_BYTES_MAX = 64 * 1024;

/**
 * The HTTP server with its routes, not yet listening. Time-outs: 10 s for a request to arrive
 * completely, 72 s for an idle connection (above a load balancer's usual 60 s).
 */
export function buildServer(options: {
  routes: (server: ApiServer) => void;
  gatekeeper: Gatekeeper;
  log: Logger;
  incoming?: Incoming;
  countRefusal?: CountRefusal;
  tracer?: Tracer | null;
  /** What paths of their own speak; left out: none. */
  dialects?: readonly Dialect[];
  /** Left out: as many as the machine can hold. */
  connectionsMax?: number;
}): FastifyInstance {
  const { routes, log, countRefusal, tracer = null, connectionsMax = Infinity } = options;
  const countByAddress = createCountByAddress(options.gatekeeper);
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
  const connections = boundConnections(server.server, {
    max: connectionsMax,
    trustedProxies: options.incoming?.trustedProxies ?? [],
  });
  const { operatorToken, operatorPort = null } = options.gatekeeper;
  // Elsewhere there is not even a method of them.
  const tellsOperators = operatorToken !== null && operatorPort === null;
  const gatekeeper: Gatekeeper = {
    ...options.gatekeeper,
    onAuthenticated: ({ raw }, owner) => connections.prove(raw.socket, owner),
  };
  if (countRefusal !== undefined) server.decorate('countRefusal', countRefusal);
  server.decorate('dialects', options.dialects ?? []);
  server.setErrorHandler(createErrorHandler(log));
  server.setValidatorCompiler(compileValidator);
  decodeBodies(server);
  acceptEmptyJson(server);
  if (tracer !== null) traceRequests(server, tracer);
  server.addHook('onRequest', refuseWithoutHost);
  boundSlowReaders(server);
  noteDoors(server);
  const count = registerAdmission(server, gatekeeper, countByAddress);
  refuseUnknownPaths(server, listRoutes(server, tellsOperators), count);
  server.register(swagger, openApiOptions);
  server.register(async (scope) => routes(scope.withTypeProvider<TypeBoxTypeProvider>()));
  server.server.on('request', (request) => lingerAtClose(request));
  server.server.on('connect', broken.onConnect);
  // Node would answer an unknown Expect header with 417; it may be ignored.
  server.server.on('checkExpectation', (request, response) =>
    server.server.emit('request', request, response),
  );
  return server;
}

type ListedRoute = { method: string; url: string };

/** Checks each route as it is added; a route accepts no query unless its schema has one. */
function listRoutes(server: FastifyInstance, hasOperator: boolean): readonly ListedRoute[] {
  const routes: ListedRoute[] = [];
  server.addHook('onRoute', (route) => {
    const { method, url, config } = route;
    if (config?.action === undefined)
      throw new Error(`${url} declares no action for authorization`);
    // Fastify would look up a serializer for each answer, which takes 30 µs; these answers need
    // none.
    const { response, ...schema } = route.schema ?? {};
    route.schema = { querystring: NO_QUERY, ...schema };
    route.config = { ...config, response };
    // Without a token even the methods of operators' paths are not told.
    if (config.action === 'operator' && !hasOperator) return;
    if (method !== 'HEAD') routes.push({ method: String(method), url });
  });
  return routes;
}

const NO_QUERY = Type.Object({}, { additionalProperties: false });

/** In a hook, not in a handler: the body of a request to an unknown path is not even parsed. */
function refuseUnknownPaths(
  server: FastifyInstance,
  routes: readonly ListedRoute[],
  count: (request: FastifyRequest) => Promise<Rejection | null>,
): void {
  server.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    const answer = (rejection: Rejection | null) =>
      sendRejection(reply, rejection ?? noRoute(routes, request, reply));
    void count(request).then(answer, done);
  });
}

function noRoute(
  routes: readonly ListedRoute[],
  request: FastifyRequest,
  reply: FastifyReply,
): Rejection {
  const { method, url } = request;
  const allow = methodsOf(routes, url.split('?', 1)[0] ?? '');
  if (allow.length === 0) return reject('NOT_FOUND', { path: url });
  void reply.header('allow', allow.join(', '));
  return reject('METHOD_NOT_ALLOWED', { method, allow });
}

/**
 * JSON, but an empty body counts as an absent one, and an absent body as one without fields: a POST
 * without fields is a request with defaults.
 */
function acceptEmptyJson(server: FastifyInstance): void {
  const parseJson = server.getDefaultJsonParser('error', 'error');
  server.removeContentTypeParser(['application/json', 'text/plain']);
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0) return done(null, undefined);
    try {
      void parseJson(request, readText(body as Buffer, request.headers['content-type']), done);
    } catch (error) {
      done(error as Error);
    }
  });
  server.addHook('onRoute', (route) => {
    if (route.schema?.body === undefined) return;
    route.preValidation = (request, _reply, done) => {
      if (request.body === undefined) request.body = {};
      done();
    };
  });
}

/** The methods of a path. */
function methodsOf(routes: readonly ListedRoute[], path: string): string[] {
  const segments = path.split('/');
  return routes
    .filter(({ url }) => {
      const pattern = url.split('/');
      return (
        pattern.length === segments.length &&
        pattern.every((part, index) => part.startsWith(':') || part === segments[index])
      );
    })
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
}
