import type { IncomingMessage } from 'node:http';
import { isRejection, reject, type Rejection } from '#src/errors.ts';
import { refusalOf, type TicketAdmission, type Admitted } from './access/ticket-admission.ts';
import { connectCdp } from './cdp/cdp.ts';
import { DialFailed } from './connections/dial.ts';
import type { Logger } from '#src/telemetry/logger.ts';
import { rejectUpgrade, statusOf } from './error-response.ts';
import { parseRoute, type Route } from './routes.ts';
import type { VncGate } from './vnc/vnc.ts';

type SocketRoute = Extract<Route, { to: 'browser' | 'page' | 'screen' }>;

export type UpgradeOptions = {
  admission: TicketAdmission;
  vnc: VncGate;
  /** Time-out of the TCP connect, and again of the browser's handshake response. */
  dialTimeoutMs: number;
  /** The client's address for log lines, also behind a trusted proxy. */
  clientOf: (request: IncomingMessage) => string;
  log: Logger;
  refused(status: number): void;
};

/**
 * Handles a client's WebSocket: ticket → session → browser → bytes. Until the browser has answered,
 * a rejection is a plain HTTP response; afterwards the socket is closed.
 */
export function createUpgradeHandler(
  options: UpgradeOptions,
): (request: IncomingMessage, head: Buffer) => void {
  async function serve(request: IncomingMessage, head: Buffer): Promise<void> {
    const client = request.socket;
    client.on('error', () => {}); // never removed: 'close' follows every error and is handled
    client.setTimeout(0);
    const refusal = await admit(request, head, options).catch((error: unknown): Rejection => {
      options.log.error({ err: error }, 'gateway upgrade failed');
      return reject('INTERNAL');
    });
    if (refusal === null) return;
    options.refused(statusOf(refusal));
    rejectUpgrade(client, refusal);
  }
  return (request, head) => void serve(request, head);
}

async function admit(
  request: IncomingMessage,
  head: Buffer,
  options: UpgradeOptions,
): Promise<Rejection | null> {
  const route = parseRoute(request.url ?? '');
  if (route === null) return reject('NOT_FOUND');
  if (route.to !== 'browser' && route.to !== 'page' && route.to !== 'screen')
    return reject('INVALID_REQUEST', {}, { message: 'There is no WebSocket at this path.' });
  if (!isHandshake(request))
    return reject('INVALID_REQUEST', {}, { message: 'This is no WebSocket handshake.' });

  const kind = route.to === 'screen' ? 'vnc' : 'cdp';
  const entered = await options.admission.admit(kind, route.ticket);
  if (isRejection(entered)) return entered;
  const { connection } = entered;
  const client = request.socket;
  const onGone = (): void => connection.end('client_gone');
  client.once('close', onGone);
  if (client.destroyed) onGone();
  let isSpliced = false;
  try {
    const refusal = await connect(route, entered, request, head, options);
    isSpliced = refusal === null;
    if (isSpliced) {
      const { organizationId, sessionId } = connection;
      const from = options.clientOf(request);
      options.log.debug({ organizationId, sessionId, kind, client: from }, 'connection opened');
    }
    return refusal;
  } catch (error) {
    if (!(error instanceof DialFailed)) throw error;
    if (connection.signal.aborted) return refusalOf(connection);
    const { organizationId, sessionId } = connection;
    options.log.warn(
      { organizationId, sessionId, kind, why: error.message },
      'connection to browser failed',
    );
    return { code: 'BROWSER_UNREACHABLE', context: {} };
  } finally {
    client.off('close', onGone);
    if (!isSpliced) connection.closed();
  }
}

async function connect(
  route: SocketRoute,
  { connection, session }: Admitted,
  request: IncomingMessage,
  head: Buffer,
  { admission, vnc, dialTimeoutMs }: UpgradeOptions,
): Promise<Rejection | null> {
  if (route.to === 'screen') {
    const endReason = (): Promise<string> => admission.endReason(connection);
    const bound = { timeoutMs: dialTimeoutMs, endReason };
    await vnc.connect(request, head, session.vnc, connection, bound);
    return null;
  }
  const path = route.to === 'browser' ? session.cdp.path : `/devtools/page/${route.targetId}`;
  const target = { ...session.cdp, path };
  const refusal = await connectCdp(request, head, target, connection, dialTimeoutMs);
  // Chromium answers 500 for a page that is closed or never existed.
  return route.to === 'page' && refusal !== null
    ? reject('NOT_FOUND', { target_id: route.targetId })
    : refusal;
}

/** Checks the client's handshake by RFC 6455 §4.1 before the browser is dialled. */
function isHandshake({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-version'] === '13' &&
    /^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')
  );
}
