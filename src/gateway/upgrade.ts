import type { IncomingMessage } from 'node:http';
import { isRejected, reject, type Rejected } from '#src/errors.ts';
import { refusalOf, type Admission, type Entered } from './access/ticket-admission.ts';
import { connectCdp } from './cdp/cdp.ts';
import { DialFailed } from './connections/dial.ts';
import type { GatewayLog } from './gateway-log.ts';
import { refuseUpgrade, statusOf } from './error-response.ts';
import { parseRoute, type Route } from './routes.ts';
import type { VncGate } from './vnc/vnc.ts';

type SocketRoute = Extract<Route, { to: 'browser' | 'page' | 'screen' }>;

export type UpgradeOptions = {
  admission: Admission;
  vnc: VncGate;
  /** For the TCP connect, and again for the browser's answer to the handshake. */
  dialTimeoutMs: number;
  /** Whose address the log says: the client's, where a proxy of ours stands between. */
  clientOf: (request: IncomingMessage) => string;
  log: GatewayLog;
  refused(status: number): void;
};

/**
 * A client's WebSocket from its request on: ticket → session → browser → bytes. Until the browser
 * has answered, the client is refused by a plain HTTP response; afterwards only by its socket's
 * end.
 */
export function createUpgradeHandler(
  options: UpgradeOptions,
): (request: IncomingMessage, head: Buffer) => void {
  async function serve(request: IncomingMessage, head: Buffer): Promise<void> {
    const client = request.socket;
    client.on('error', () => {}); // for good: 'close' follows each, and is what we act on
    client.setTimeout(0);
    const refusal = await admit(request, head, options).catch((error: unknown): Rejected => {
      options.log.error({ err: error }, 'upgrade failed');
      return reject('INTERNAL');
    });
    if (refusal === null) return;
    options.refused(statusOf(refusal));
    refuseUpgrade(client, refusal);
  }
  return (request, head) => void serve(request, head);
}

async function admit(
  request: IncomingMessage,
  head: Buffer,
  options: UpgradeOptions,
): Promise<Rejected | null> {
  const route = parseRoute(request.url ?? '');
  if (route === null) return reject('NOT_FOUND');
  if (route.to !== 'browser' && route.to !== 'page' && route.to !== 'screen')
    return reject('INVALID_REQUEST', {}, { message: 'There is no WebSocket at this path.' });
  if (!isHandshake(request))
    return reject('INVALID_REQUEST', {}, { message: 'This is no WebSocket handshake.' });

  const kind = route.to === 'screen' ? 'vnc' : 'cdp';
  const entered = await options.admission.enter(kind, route.ticket);
  if (isRejected(entered)) return entered;
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
      options.log.debug({ organizationId, sessionId, kind, client: from }, 'connected');
    }
    return refusal;
  } catch (error) {
    if (!(error instanceof DialFailed)) throw error;
    if (connection.signal.aborted) return refusalOf(connection);
    const { organizationId, sessionId } = connection;
    options.log.warn({ organizationId, sessionId, kind, why: error.message }, 'not connected');
    return { rejected: 'BROWSER_UNREACHABLE', context: {} };
  } finally {
    client.off('close', onGone);
    if (!isSpliced) connection.closed();
  }
}

async function connect(
  route: SocketRoute,
  { connection, session }: Entered,
  request: IncomingMessage,
  head: Buffer,
  { admission, vnc, dialTimeoutMs }: UpgradeOptions,
): Promise<Rejected | null> {
  if (route.to === 'screen') {
    const whyGone = (): Promise<string> => admission.whyGone(connection);
    const bound = { timeoutMs: dialTimeoutMs, whyGone };
    await vnc.connect(request, head, session.vnc, connection, bound);
    return null;
  }
  const path = route.to === 'browser' ? session.cdp.path : `/devtools/page/${route.targetId}`;
  const target = { ...session.cdp, path };
  const refusal = await connectCdp(request, head, target, connection, dialTimeoutMs);
  // Chromium has a 500 for a page that is closed or never was.
  return route.to === 'page' && refusal !== null
    ? reject('NOT_FOUND', { target_id: route.targetId })
    : refusal;
}

/** What RFC 6455 §4.1 asks of a client, so that no browser is dialled for less. */
function isHandshake({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-version'] === '13' &&
    /^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')
  );
}
