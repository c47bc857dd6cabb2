import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Places } from '#src/kernel/async/places.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { AllowedOrigins } from './access/allowed-origins.ts';
import { modeOf } from './access/grant.ts';
import type { RequestCounter } from './access/request-counter.ts';
import type { Ticket } from './access/ticket.ts';
import { ofAddress, type Refused, type TicketAdmission } from './access/ticket-admission.ts';
import type { WorthlessTickets } from './access/worthless-tickets.ts';
import { answerDevtools } from './devtools.ts';
import type { SocketPlaces } from './connections/socket-places.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { sendBody, sendJson, sendRejection, statusOf } from './error-response.ts';
import type { Door } from './door.ts';
import { answerPorts } from './ports/answer-ports.ts';
import type { DebuggerPorts } from './ports/debugger-ports.ts';
import type { Route } from './routes.ts';
import { allowSlowBody } from './listeners.ts';
import type { Viewer, ViewerFile } from './vnc/viewer.ts';
import { passCommand, type CommandOptions } from './webdriver/commands.ts';

export type HttpOptions = {
  admission: TicketAdmission;
  viewer: Viewer;
  tickets: Pick<WorthlessTickets, 'open' | 'openOwn'>;
  allowedOrigins: AllowedOrigins;
  door: Door;
  /** null: sessions get no ports of their own. */
  ports: DebuggerPorts | null;
  /** See DevtoolsOptions. */
  documents: Places;
  dialTimeoutMs: number;
  requests: RequestCounter;
  places: Pick<SocketPlaces, 'begin' | 'joined'>;
  log: Logger;
  refused(status: number): void;
  commands: CommandOptions;
};

/** Answers plain HTTP requests: the viewer's files, DevTools documents, rejections. */
export function createHttpHandler(
  options: HttpOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = options.door.routeOf(request);
    if (route?.to === 'webdriver') allowSlowBody(request);
    else request.resume(); // no other route takes a body
    const counted = options.requests.count(request, route);
    setHeaders(response, counted.headers);
    function countForAddress(): Rejection | null {
      const recounted = options.requests.countForAddress(request, counted);
      setHeaders(response, recounted.headers);
      return recounted.refusal;
    }
    const begun = counted.refusal ?? beginRequest(request, response, options.places);
    const admitted = (): void => {
      if (typeof begun === 'function') begun();
      options.places.joined(request.socket);
    };
    const asked = { request, response, countForAddress, admitted };
    let refusal: Refused | null =
      typeof begun !== 'function'
        ? begun
        : await answer(route, asked, options).catch((error: unknown): Refused => {
            options.log.error({ err: error }, 'gateway request failed');
            return reject('INTERNAL');
          });
    if (refusal === null) return;
    if (refusal.isOfAddress) refusal = countForAddress() ?? refusal;
    options.refused(statusOf(refusal));
    // What of the body was not read is not read to its end either.
    if (route?.to === 'webdriver' && !response.headersSent)
      response.setHeader('connection', 'close');
    sendRejection(response, refusal);
  }
  return (request, response) => void serve(request, response);
}

function setHeaders(response: ServerResponse, headers: Record<string, number>): void {
  if (response.headersSent) return;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
}

/**
 * Counts the request among its client's open ones until it is answered, or the returned function is
 * called.
 */
function beginRequest(
  request: IncomingMessage,
  response: ServerResponse,
  places: HttpOptions['places'],
): (() => void) | Refused {
  const begun = places.begin(request);
  if (typeof begun !== 'function') return ofAddress(begun);
  response.once('close', begun);
  if (request.socket.destroyed) begun();
  return begun;
}

type Asked = {
  request: IncomingMessage;
  response: ServerResponse;
  /** Counts the request for its client's address instead; a rejection: that is used up. */
  countForAddress: () => Rejection | null;
  /** The request became a connection, which has limits of its own. */
  admitted: () => void;
};

async function answer(
  route: Route | null,
  { request, response, countForAddress, admitted }: Asked,
  options: HttpOptions,
): Promise<Refused | null> {
  if (!hasHost(request)) return noHost();
  const guarded = options.door.guard(request);
  if (guarded !== null) return guarded;
  if (route === null) return reject('NOT_FOUND');
  if (route.to === 'webdriver') {
    // The tickets of clients are for the browser; the API alone sends commands here.
    if (options.tickets.openOwn(route.ticket) === null) return ofAddress(reject('NOT_FOUND'));
    return await passCommand(route, { request, response, admitted }, options.commands);
  }
  const allow = methodsOf(route);
  if (!allow.includes(request.method ?? '')) {
    response.setHeader('allow', allow.join(', '));
    const context = { method: request.method, allow };
    return ofAddress(reject('METHOD_NOT_ALLOWED', context));
  }
  switch (route.to) {
    case 'browser':
    case 'bidi':
    case 'page':
      return await socketOnly('cdp', route.ticket, options);
    case 'screen':
      return await socketOnly('vnc', route.ticket, options);
    case 'json':
    case 'new-page':
    case 'tab':
      return await answerDevtools(
        route,
        { request, response },
        {
          ...options,
          prefixFor: (asked) => options.door.prefixFor(asked),
        },
      );
    case 'debugger-address':
      return await answerPorts(route.ticket, { request, response }, options);
    case 'viewer':
    case 'viewer-state':
      return await sendViewer(route, { response, countForAddress }, options);
    case 'viewer-slash': {
      const path = request.url?.split('?', 1)[0] ?? '';
      response.writeHead(308, { location: `${path.slice(path.lastIndexOf('/') + 1)}/` }).end();
      return null;
    }
    case 'viewer-file':
      return sendFile(response, options.viewer.file(route.file));
  }
}

/** As Chromium: a page is opened by PUT alone, so that no link does. */
function methodsOf(route: Route): readonly string[] {
  switch (route.to) {
    case 'new-page':
      return ['PUT'];
    case 'tab':
      return ['GET'];
    case 'debugger-address':
      return ['POST', 'DELETE'];
    default:
      return ['GET', 'HEAD'];
  }
}

/** A plain request to a WebSocket path: rejected with the error that the WebSocket would get. */
async function socketOnly(
  kind: 'cdp' | 'vnc',
  ticket: string,
  { admission }: HttpOptions,
): Promise<Refused> {
  const found = await admission.check(kind, ticket);
  return isRejection(found)
    ? found
    : reject('INVALID_REQUEST', {}, { message: 'Connect here by WebSocket.' });
}

/**
 * The page is sent for ended sessions too: it shows why the session ended. That of a share that has
 * ended is sent with 410.
 */
async function sendViewer(
  route: Extract<Route, { to: 'viewer' | 'viewer-state' }>,
  { response, countForAddress }: Pick<Asked, 'response' | 'countForAddress'>,
  options: HttpOptions,
): Promise<Refused | null> {
  const { admission, viewer } = options;
  const found = await admission.check('vnc', route.ticket);
  const isShown = ['SESSION_NOT_READY', 'SESSION_ENDED', 'SHARE_ENDED'];
  if (isRejection(found) && (route.to === 'viewer-state' || !isShown.includes(found.code)))
    return found;
  if (isRejection(found) && found.isOfAddress) {
    const refusal = countForAddress();
    if (refusal !== null) return refusal;
  }
  const ticket = options.tickets.open(route.ticket);
  if (!isRejection(found) && route.to === 'viewer-state') {
    const mode = modeOf(found, ticket?.grant ?? null);
    sendJson(response, JSON.stringify({ status: 'active', mode }));
    return null;
  }
  const page = viewer.page(await embeddersOf(ticket, options));
  const isOver = isRejection(found) && found.code === 'SHARE_ENDED';
  return sendFile(response, page, isOver ? 410 : 200);
}

/** How long the page waits for the origins that may embed it; then none may. */
const ORIGINS_MS = 2_000;

/** Only a share's page may be embedded, where its organization says so. */
async function embeddersOf(
  ticket: Ticket | null,
  { allowedOrigins, log }: HttpOptions,
): Promise<readonly string[]> {
  if (ticket?.grant?.kind !== 'share') return [];
  const { organizationId } = ticket;
  try {
    return await within(ORIGINS_MS, allowedOrigins(organizationId));
  } catch (error) {
    log.warn({ err: error, organizationId }, 'failed to read the origins that may embed shares');
    return [];
  }
}

/** RFC 9112 §3.2 asks every HTTP/1.1 request for it. */
export function hasHost({ httpVersion, headers }: IncomingMessage): boolean {
  return httpVersion !== '1.1' || headers.host !== undefined;
}

/** The rejection for a request that has none. */
export function noHost(): Refused {
  return ofAddress(reject('INVALID_REQUEST', {}, { message: 'There is no Host.' }));
}

function sendFile(
  response: ServerResponse,
  file: ViewerFile | undefined,
  status = 200,
): Rejection | null {
  if (file === undefined) return reject('NOT_FOUND');
  sendBody(response, status, file.headers, file.body);
  return null;
}
