import type { IncomingMessage, ServerResponse } from 'node:http';
import { isRejected, reject, type Rejected } from '#src/errors.ts';
import { refusalOf, type Admission } from './access/ticket-admission.ts';
import { readDocument } from './cdp/devtools-json.ts';
import type { GatewayLog } from './gateway-log.ts';
import { refuseRequest, statusOf } from './error-response.ts';
import { parseRoute, type Route } from './routes.ts';
import type { Viewer, ViewerFile } from './vnc/viewer.ts';

export type HttpOptions = {
  admission: Admission;
  viewer: Viewer;
  /** `ws://host:port` as clients that came by this request's way can reach us. */
  prefixFor: (request: IncomingMessage) => string;
  dialTimeoutMs: number;
  log: GatewayLog;
  refused(status: number): void;
};

/** Answers all that is not a WebSocket: the viewer's files, DevTools documents, refusals. */
export function createHttpHandler(
  options: HttpOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = await answer(request, response, options).catch((error: unknown): Rejected => {
      options.log.error({ err: error }, 'request failed');
      return reject('INTERNAL');
    });
    if (refusal === null) return;
    options.refused(statusOf(refusal));
    refuseRequest(response, refusal);
  }
  return (request, response) => void serve(request, response);
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: HttpOptions,
): Promise<Rejected | null> {
  request.resume(); // no route takes a body
  const route = parseRoute(request.url ?? '');
  if (route === null) return reject('NOT_FOUND');
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return reject('METHOD_NOT_ALLOWED', { method: request.method, allow: ['GET', 'HEAD'] });
  }
  switch (route.to) {
    case 'browser':
    case 'page':
      return await socketOnly('cdp', route.ticket, options);
    case 'screen':
      return await socketOnly('vnc', route.ticket, options);
    case 'json':
      return await sendDocument(route, request, response, options);
    case 'viewer':
    case 'viewer-state':
      return await sendViewer(route, response, options);
    case 'viewer-slash': {
      const path = request.url?.split('?', 1)[0] ?? '';
      response.writeHead(308, { location: `${path.slice(path.lastIndexOf('/') + 1)}/` }).end();
      return null;
    }
    case 'viewer-file':
      return sendFile(response, options.viewer.file(route.file));
  }
}

/** A plain request where only a WebSocket makes sense: it is refused as the WebSocket would be. */
async function socketOnly(
  kind: 'cdp' | 'vnc',
  ticket: string,
  { admission }: HttpOptions,
): Promise<Rejected> {
  const found = await admission.look(kind, ticket);
  return isRejected(found)
    ? found
    : reject('INVALID_REQUEST', {}, { message: 'Connect here by WebSocket.' });
}

/** The page is sent for any session, ended ones too: it says itself what became of it. */
async function sendViewer(
  route: Extract<Route, { to: 'viewer' | 'viewer-state' }>,
  response: ServerResponse,
  { admission, viewer }: HttpOptions,
): Promise<Rejected | null> {
  const found = await admission.look('vnc', route.ticket);
  const isShown = ['SESSION_NOT_READY', 'SESSION_ENDED'];
  if (isRejected(found) && (route.to === 'viewer-state' || !isShown.includes(found.rejected)))
    return found;
  if (route.to === 'viewer') return sendFile(response, viewer.page);
  sendJson(response, JSON.stringify({ status: 'active' }));
  return null;
}

async function sendDocument(
  route: Extract<Route, { to: 'json' }>,
  request: IncomingMessage,
  response: ServerResponse,
  { admission, prefixFor, dialTimeoutMs, log }: HttpOptions,
): Promise<Rejected | null> {
  const entered = await admission.enter('cdp', route.ticket);
  if (isRejected(entered)) return entered;
  const { connection, session } = entered;
  try {
    const to = { prefix: prefixFor(request), ticket: route.ticket };
    const bound = { timeoutMs: dialTimeoutMs, signal: connection.signal };
    sendJson(response, await readDocument(route.document, session.cdp, to, bound));
    return null;
  } catch (error) {
    if (connection.signal.aborted) return refusalOf(connection);
    log.warn({ err: error, sessionId: connection.sessionId }, 'no answer from the browser');
    return { rejected: 'BROWSER_UNREACHABLE', context: {} };
  } finally {
    connection.closed();
  }
}

function sendFile(response: ServerResponse, file: ViewerFile | undefined): Rejected | null {
  if (file === undefined) return reject('NOT_FOUND');
  response.writeHead(200, file.headers).end(file.body);
  return null;
}

function sendJson(response: ServerResponse, body: string): void {
  response
    .writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    })
    .end(body);
}
