import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors, reject, type ErrorName } from '#src/errors.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { goneSignal } from '../../http/client-gone.ts';
import type { ApiServer } from '../../http/route.ts';
import { readCapabilities } from '../../webdriver/capabilities.ts';
import { innerRequests } from '../../webdriver/inner-requests.ts';
import { newSession } from '../../webdriver/new-session.ts';
import { passCommand, sendWebDriver } from '../../webdriver/pass-command.ts';
import { parseWebDriverId } from '../../webdriver/session-id.ts';
import { webDriverError, webDriverRejection } from '../../webdriver/webdriver-error.ts';

type Needed = Pick<ApiDependencies, 'drivers' | 'driverUrl'>;

const PREFIX = '/wd/hub';
const SESSION = `${PREFIX}/session/`;
const config = { action: 'control', refusals: [], isWebDriver: true } as const;
const command = { ...config, isBoundedElsewhere: true } as const;
/** What Selenium's clients call otherwise than chromedriver. */
const DRIVERS_OWN: Readonly<Record<string, string>> = { '/se/file': '/file' };
const METHODS = ['GET', 'POST', 'DELETE'] as const;

/**
 * W3C WebDriver at /wd/hub: New Session creates a session, Delete Session stops it, and all other
 * commands go to the driver beside its browser. W3C describes the commands, so the document of the
 * API has none.
 */
export function webDriver(server: ApiServer, dependencies: Needed): void {
  server.route({
    method: 'GET',
    url: `${PREFIX}/status`,
    schema: { hide: true },
    config: { action: 'public', refusals: [] },
    handler: (_request, reply) =>
      reply.send({ value: { ready: true, message: 'Sessions are created with an API key.' } }),
  });
  server.route({
    method: 'POST',
    url: `${PREFIX}/session`,
    schema: { hide: true },
    // Its create is counted.
    config: command,
    handler: (request, reply) => begin(server, dependencies, request, reply),
  });
  // A scope of its own: here a body of any type is passed on as it arrives.
  server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    passCommands(scope.withTypeProvider(), server, dependencies);
  });
  server.route({
    method: [...METHODS],
    url: `${PREFIX}/*`,
    exposeHeadRoute: false,
    schema: { hide: true },
    config,
    handler: (request, reply) =>
      sendWebDriver(reply, webDriverError('unknown command', `There is no ${request.url}.`)),
  });
}

function passCommands(scope: ApiServer, server: ApiServer, dependencies: Needed): void {
  const { drivers, driverUrl } = dependencies;
  const params = Type.Object({ id: Type.String() });
  scope.route({
    method: 'DELETE',
    url: `${SESSION}:id`,
    schema: { hide: true, params },
    config: command,
    handler: (request, reply) => quit(server, request, request.params.id, reply),
  });
  scope.route({
    method: [...METHODS],
    url: `${SESSION}:id/*`,
    exposeHeadRoute: false,
    schema: { hide: true, params },
    config: command,
    handler(request, reply) {
      const { id } = request.params;
      const session = parseWebDriverId(id);
      if (session === null) return sendWebDriver(reply, unknownSession(id));
      const { organizationId, keyHash } = request.caller;
      const rest = request.url.slice(SESSION.length + id.length);
      const to = {
        driverUrl: driverUrl(organizationId, session.sessionId, keyHash),
        path: `/session/${session.driverId}${DRIVERS_OWN[rest] ?? rest}`,
      };
      return passCommand(drivers, to, request, reply);
    },
  });
}

async function begin(
  server: ApiServer,
  { drivers, driverUrl }: Needed,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const wanted = readCapabilities(request.body);
  if ('status' in wanted) return sendWebDriver(reply, wanted);
  const { organizationId, keyHash } = request.caller;
  const { retryAfter, ...answer } = await newSession(wanted, {
    inner: innerRequests(server, request),
    drivers,
    driverUrlOf: (sessionId) => driverUrl(organizationId, sessionId, keyHash),
    gone: goneSignal(reply),
  });
  if (retryAfter !== undefined) void reply.header('retry-after', retryAfter);
  return sendWebDriver(reply, answer);
}

/** The stop of a session that has ended is no error: a client may have closed its last window. */
async function quit(
  server: ApiServer,
  request: FastifyRequest,
  id: string,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const session = parseWebDriverId(id);
  if (session === null) return sendWebDriver(reply, unknownSession(id));
  const inner = innerRequests(server, request);
  const stopped = await inner('DELETE', `/api/sessions/${session.sessionId}`);
  if (stopped.status === 200) return reply.send({ value: null });
  const code = String(stopped.body['error']);
  const error: ErrorName = code in errors ? (code as ErrorName) : 'INTERNAL';
  const message = String(stopped.body['message']);
  return sendWebDriver(reply, webDriverRejection(reject(error, {}, { message })));
}

function unknownSession(id: string) {
  return webDriverError('invalid session id', `There is no session ${id}.`);
}
