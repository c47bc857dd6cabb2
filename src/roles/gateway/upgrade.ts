import type { IncomingMessage } from 'node:http';
import { isRejection, reject } from '#src/kernel/errors.ts';
import type { RequestCounter } from './access/request-counter.ts';
import {
  noScreen,
  ofAddress,
  type Admitted,
  type Refused,
  type TicketAdmission,
} from './access/ticket-admission.ts';
import type { BidiGate } from './bidi/bidi-gate.ts';
import { connectCdp } from './cdp/cdp.ts';
import { DialFailed } from './connections/dial.ts';
import type { ClientHandshake } from './connections/handshake.ts';
import type { SocketPlaces } from './connections/socket-places.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { rejectUpgrade, statusOf } from './error-response.ts';
import { hasHost, noHost } from './http.ts';
import type { Door } from './door.ts';
import type { Route } from './routes.ts';
import type { VncGate } from './vnc/vnc.ts';

type SocketRoute = Extract<Route, { to: 'browser' | 'page' | 'bidi' | 'screen' }>;

export type UpgradeOptions = {
  door: Door;
  admission: TicketAdmission;
  vnc: VncGate;
  bidi: BidiGate;
  /** Time-out of the TCP connect, and again of the browser's handshake response. */
  dialTimeoutMs: number;
  /** The client's address for log lines, also behind a trusted proxy. */
  clientOf: (request: IncomingMessage) => string;
  requests: RequestCounter;
  places: SocketPlaces;
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
    const route = options.door.routeOf(request);
    let counted = options.requests.count(request, route);
    const handshake = { request, head, headers: counted.headers };
    let refusal: Refused | null =
      counted.refusal ??
      (await begin(route, handshake, options).catch((error: unknown): Refused => {
        options.log.error({ err: error }, 'gateway upgrade failed');
        return reject('INTERNAL');
      }));
    if (refusal === null) return;
    if (refusal.isOfAddress) {
      counted = options.requests.countForAddress(request, counted);
      refusal = counted.refusal ?? refusal;
    }
    options.refused(statusOf(refusal));
    rejectUpgrade(client, refusal, counted.headers);
  }
  return (request, head) => void serve(request, head);
}

/** Counts the handshake among its client's open requests until it is over. */
async function begin(
  route: Route | null,
  handshake: ClientHandshake,
  options: UpgradeOptions,
): Promise<Refused | null> {
  const begun = options.places.begin(handshake.request);
  if (typeof begun !== 'function') return ofAddress(begun);
  try {
    const refusal = await admit(route, handshake, options);
    if (refusal === null) options.places.joined(handshake.request.socket);
    return refusal;
  } finally {
    begun();
  }
}

async function admit(
  route: Route | null,
  handshake: ClientHandshake,
  options: UpgradeOptions,
): Promise<Refused | null> {
  const { request } = handshake;
  if (!hasHost(request)) return noHost();
  const guarded = options.door.guard(request);
  if (guarded !== null) return guarded;
  if (route === null) return reject('NOT_FOUND');
  if (!isSocketRoute(route)) return invalid('There is no WebSocket at this path.');
  if (!isHandshake(request)) return invalid('This is no WebSocket handshake.');

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
    const refusal = await connect(route, entered, handshake, options);
    isSpliced = refusal === null;
    if (isSpliced) {
      const { organizationId, sessionId } = connection;
      const from = options.clientOf(request);
      options.log.debug({ organizationId, sessionId, kind, client: from }, 'connection opened');
    }
    return refusal;
  } catch (error) {
    if (!(error instanceof DialFailed)) throw error;
    const { organizationId, sessionId } = connection;
    if (!connection.signal.aborted)
      options.log.warn(
        { organizationId, sessionId, kind, why: error.message },
        'connection to browser failed',
      );
    return await options.admission.unreachable(connection);
  } finally {
    client.off('close', onGone);
    if (!isSpliced) connection.closed();
  }
}

function isSocketRoute(route: Route): route is SocketRoute {
  return ['browser', 'page', 'bidi', 'screen'].includes(route.to);
}

function invalid(message: string): Refused {
  return ofAddress(reject('INVALID_REQUEST', {}, { message }));
}

async function connect(
  route: SocketRoute,
  { connection, session }: Admitted,
  handshake: ClientHandshake,
  { admission, vnc, bidi, dialTimeoutMs }: UpgradeOptions,
): Promise<Refused | null> {
  if (route.to === 'screen') {
    const endReason = (): Promise<string> => admission.endReason(connection);
    const bound = { timeoutMs: dialTimeoutMs, endReason };
    if (session.vnc === null) return noScreen();
    const target = { vnc: session.vnc, cdp: session.cdp };
    await vnc.connect(handshake, target, connection, bound);
    return null;
  }
  if (route.to === 'bidi') {
    const more = { attached: route.attached, dialTimeoutMs };
    const refusal = await bidi.connect(handshake, session.cdp, connection, more);
    if (refusal?.code !== 'BROWSER_UNREACHABLE') return refusal;
    return await admission.unreachable(connection, refusal.context);
  }
  const target = { cdp: session.cdp, pageId: route.to === 'page' ? route.targetId : null };
  const refusal = await connectCdp(handshake, target, connection, dialTimeoutMs);
  // Chromium answers 500 for a page that is closed or never existed.
  if (route.to === 'page' && refusal !== null)
    return reject('NOT_FOUND', { target_id: route.targetId });
  if (refusal?.code !== 'BROWSER_UNREACHABLE') return refusal;
  return await admission.unreachable(connection, refusal.context);
}

/**
 * Checks the client's handshake by RFC 6455 §4.1 before the browser is dialled, but for the form of
 * its key: Chromium takes any, and go-rod's is `nil`.
 */
function isHandshake({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-version'] === '13' &&
    /^[\x21-\x7e]{1,128}$/.test(headers['sec-websocket-key'] ?? '')
  );
}
