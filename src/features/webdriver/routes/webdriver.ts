import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { ServerState } from '#events/server.ts';
import { projectionId } from '#projections/projection.ts';
import { liveServers, servers } from '#projections/servers.ts';
import { readList } from '#projections/store/queries.ts';
import { keptBriefly } from '#src/kernel/async/kept-briefly.ts';
import { errors, isRejection, reject, type ErrorName } from '#src/kernel/errors.ts';
import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import { createLocalLimiter, secondsToReset } from '#src/kernel/http/rate-window.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import { takeAnyBody } from '#src/roles/api/http/any-body.ts';
import { readText } from '#src/roles/api/http/body-coding.ts';
import { goneSignal } from '#src/roles/api/http/client-gone.ts';
import { costs } from '#src/roles/api/http/cost.ts';
import { sendRejection } from '#src/roles/api/http/error-response.ts';
import type { ApiServer } from '#src/roles/api/http/route.ts';
import { holdBody } from '../arriving-body.ts';
import { readCapabilities } from '../capabilities.ts';
import type { Drivers } from '../drivers.ts';
import { innerRequests } from '../inner-requests.ts';
import { newSession } from '../new-session.ts';
import { passCommand, refuseCommand, sendWebDriver } from '../pass-command.ts';
import { parseWebDriverId } from '../session-id.ts';
import { webDriverError, webDriverRejection } from '../webdriver-error.ts';
import { downloads } from './downloads.ts';

/** What the routes need beside the core's dependencies. */
export type WebDriverParts = {
  drivers: Drivers;
  /** Where a gateway takes the commands of a caller whose credential was just checked. */
  driverUrl: (organizationId: string, sessionId: string, keyHash: string | null) => string;
};
type Needed = Pick<ApiDependencies, 'log' | 'transfers'> & WebDriverParts;
type Versions = { readVersions: () => Promise<string[]> };

export const PREFIX = '/wd/hub';
const SESSION = `${PREFIX}/session/`;
const config = { action: 'control', refusals: [] } as const;
const command = { ...config, isBoundedElsewhere: true } as const;
/** What Selenium's clients call otherwise than chromedriver. */
const DRIVERS_OWN: Readonly<Record<string, string>> = { '/se/file': '/file' };
const METHODS = ['GET', 'POST', 'DELETE'] as const;
const ALL_METHODS = [...METHODS, 'PUT', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE'] as const;
/** W3C's clients send any query. */
const querystring = Type.Object({});
const schema = { hide: true, querystring } as const;
/** Of a New Session, which is held in memory. */
const NEW_SESSION = {
  bytesMax: 1024 * 1024,
  tooLarge:
    'A New Session may have 1 MiB. An extension is uploaded by POST /api/extensions, and named ' +
    'in `extensions` of bss:options.',
};
/** How long the versions of the servers' browsers are taken for these. */
const VERSIONS_MS = 1_000;
const SERVERS_MAX = 1_000;
/** What is asked of a session is written as JSON again, by calls within calls. */
const DEPTH_MAX = 64;
/**
 * Of one organization in a minute, at this process. The units of a tier do not refuse them: a
 * script that has used these up would leave its session behind.
 */
const QUITS_MAX = 6_000;
/** What follows the id of a session in the path of a command. */
const COMMAND = /^(?:\/[A-Za-z0-9%._~:-]{1,256}){1,8}$/;
const DOTS = /^(?:\.|%2e){1,2}$/i;

/**
 * W3C WebDriver at /wd/hub: New Session creates a session, Delete Session stops it, and all other
 * commands go to the driver beside its browser. W3C describes the commands, so the document of the
 * API has none.
 */
export function webDriver(server: ApiServer, dependencies: ApiDependencies & WebDriverParts): void {
  server.route({
    method: 'GET',
    url: `${PREFIX}/status`,
    exposeHeadRoute: false,
    schema,
    config: { action: 'public', refusals: [] },
    handler: (_request, reply) =>
      reply.send({ value: { ready: true, message: 'Sessions are created with an API key.' } }),
  });
  downloads(server, dependencies);
  const versions = keptBriefly<string[]>(VERSIONS_MS);
  const readVersions = () => versions('', () => liveVersions(dependencies.views));
  // Scopes of their own, as W3C asks for no Content-Type: here a body of any type is taken.
  server.register(async (scope) => {
    takeAnyBody(scope, 'stream');
    scope.route({
      method: 'POST',
      url: `${PREFIX}/session`,
      schema,
      config: { ...config, cost: costs.createSession },
      handler: (request, reply) => begin(server, { ...dependencies, readVersions }, request, reply),
    });
    passCommands(scope.withTypeProvider(), server, dependencies);
  });
  // What no other route takes, with a body of any type.
  server.register(async (scope) => {
    takeAnyBody(scope, 'stream');
    for (const url of [PREFIX, `${PREFIX}/*`])
      scope.route({
        method: [...ALL_METHODS],
        url,
        exposeHeadRoute: false,
        schema,
        config,
        handler: (request, reply) => sendRejection(reply, noCommand(request, reply)),
      });
  });
}

function passCommands(scope: ApiServer, server: ApiServer, dependencies: Needed): void {
  const { driverUrl } = dependencies;
  const params = Type.Object({ id: Type.String() });
  const takeQuit = createLocalLimiter(Date.now);
  scope.route({
    method: 'DELETE',
    url: `${SESSION}:id`,
    schema: { ...schema, params },
    config: command,
    handler(request, reply) {
      const allowance = takeQuit(request.caller.organizationId, QUITS_MAX);
      return allowance.isAllowed
        ? quit(server, request, request.params.id, reply)
        : sendWebDriver(reply, tooManyQuits(secondsToReset(allowance, Date.now())));
    },
  });
  scope.route({
    method: [...METHODS],
    url: `${SESSION}:id/*`,
    exposeHeadRoute: false,
    schema: { ...schema, params },
    config: command,
    handler(request, reply) {
      const { id } = request.params;
      const session = parseWebDriverId(id);
      if (session === null) return refuse(request, reply, unknownSession(id));
      const { organizationId, keyHash } = request.caller;
      const [rest = ''] = request.url.slice(SESSION.length + id.length).split('?');
      if (!isCommand(rest))
        return refuse(request, reply, webDriverRejection(unknownCommand(request)));
      const to = {
        driverUrl: driverUrl(organizationId, session.sessionId, keyHash),
        path: `/session/${session.driverId}${DRIVERS_OWN[rest] ?? rest}`,
      };
      return passCommand(dependencies, to, request, reply);
    },
  });
}

/** Its units were taken before its body was read, for what is refused and for its create. */
async function begin(
  server: ApiServer,
  dependencies: Needed & Versions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { drivers, driverUrl, log } = dependencies;
  const wanted = await readWanted(dependencies, request);
  if (isRejection(wanted)) return refuseCommand(reply, wanted);
  if ('status' in wanted) return sendWebDriver(reply, wanted);
  const { organizationId, keyHash } = request.caller;
  const { retryAfter, ...answer } = await newSession(wanted, {
    inner: innerRequests(server, request),
    drivers,
    driverUrlOf: (sessionId) => driverUrl(organizationId, sessionId, keyHash),
    gone: goneSignal(reply),
    log,
  });
  if (retryAfter !== undefined) void reply.header('retry-after', retryAfter);
  return sendWebDriver(reply, answer);
}

async function readWanted({ transfers, readVersions }: Needed & Versions, request: FastifyRequest) {
  const versions = await readVersions();
  const held = await holdBody(request, transfers, NEW_SESSION);
  if (isRejection(held)) return held;
  using body = held;
  return readCapabilities(jsonOf(body.bytes), versions);
}

/** The versions of the browsers that new sessions get; a server may not know its own. */
async function liveVersions(views: ApiDependencies['views']): Promise<string[]> {
  const live = await readList<ServerState>(views, projectionId(servers), liveServers, SERVERS_MAX);
  return live.map(({ browser }) => browser?.version ?? 'unknown');
}

/** What goes no further costs a unit: nothing else bounds how often it is sent. */
async function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  refusal: Parameters<typeof sendWebDriver>[1],
): Promise<FastifyReply> {
  const over = await request.chargeRefusal();
  return sendWebDriver(reply, over === null ? refusal : webDriverRejection(over));
}

/** The stop of a session that has ended is no error: a client may have closed its last window. */
async function quit(
  server: ApiServer,
  request: FastifyRequest,
  id: string,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const session = parseWebDriverId(id);
  if (session === null) return refuse(request, reply, unknownSession(id));
  const inner = innerRequests(server, request);
  const stopped = await inner('DELETE', `/api/sessions/${session.sessionId}`);
  if (stopped.status === 200) return reply.send({ value: null });
  const code = String(stopped.body['error']);
  const error: ErrorName = code in errors ? (code as ErrorName) : 'INTERNAL';
  const message = String(stopped.body['message']);
  return sendWebDriver(reply, webDriverRejection(reject(error, {}, { message })));
}

/**
 * Whether a path below a session's may be a command's. With a segment of dots it would lead
 * elsewhere at the gateway.
 */
function isCommand(path: string): boolean {
  if (!COMMAND.test(path)) return false;
  return !path.split('/').some((segment) => DOTS.test(segment));
}

/**
 * W3C has JSON in UTF-8, whatever a client says that it is. Undefined: it is none, or too much.
 * @throws Unreadable where it is no UTF-8
 */
function jsonOf(body: Buffer): unknown {
  const text = readText(body, undefined);
  try {
    return parseForeignJson(text, { bytesMax: NEW_SESSION.bytesMax, depthMax: DEPTH_MAX });
  } catch {
    return undefined;
  }
}

function unknownCommand({ url }: FastifyRequest) {
  return reject('NOT_FOUND', { path: url });
}

/** What there is at a path, by W3C's words: nothing, or other methods. */
function noCommand(request: FastifyRequest, reply: FastifyReply) {
  const { url, method } = request;
  const allow = methodsOf(url.slice(PREFIX.length).split('?')[0] ?? '');
  if (allow.length === 0) return unknownCommand(request);
  void reply.header('allow', allow.join(', '));
  return reject('METHOD_NOT_ALLOWED', { method, allow });
}

function methodsOf(path: string): readonly string[] {
  if (path === '/status') return ['GET'];
  if (path === '/session') return ['POST'];
  const [, below] = /^\/session\/[^/]+(.*)$/.exec(path) ?? [];
  if (below === undefined) return [];
  return below === '' ? ['DELETE'] : isCommand(below) ? METHODS : [];
}

function tooManyQuits(retryAfterSeconds: number) {
  const context = { of: 'organization', limit: QUITS_MAX };
  return webDriverRejection(reject('RATE_LIMIT_EXCEEDED', context, { retryAfterSeconds }));
}

function unknownSession(id: string) {
  return webDriverError('invalid session id', `There is no session ${id}.`);
}
