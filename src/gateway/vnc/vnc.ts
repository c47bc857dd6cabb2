import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocketServer, type RawData, type WebSocket } from 'ws';
import { closeOf } from '../connections/close-codes.ts';
import type { Connection } from '../connections/connection.ts';
import { dial, DialFailed } from '../connections/dial.ts';
import { followHandshake } from './rfb-handshake.ts';

export type VncLimits = {
  /** Bytes on their way to a viewer from which on the browser is not read; see `stalledMs`. */
  bufferedBytesMax: number;
  /** Of one message of a viewer; noVNC sends far smaller ones. */
  messageBytesMax: number;
  /** Under 30 s, since load balancers cut what is silent for 60 s. */
  pingEveryMs: number;
};

export type VncGate = {
  /**
   * Joins a viewer's WebSocket to its screen, RFB in binary messages, whatever their borders.
   * Resolves once bytes flow; `whyGone` is asked when the screen's side ends first, unless it has
   * just refused the viewer's password.
   * @throws DialFailed where the screen does not answer; the viewer has seen nothing then.
   */
  connect(
    request: IncomingMessage,
    head: Buffer,
    target: { host: string; port: number },
    connection: Connection,
    options: { timeoutMs: number; whyGone: () => Promise<string> },
  ): Promise<void>;
};

/** How long a viewer has to answer our Close before its socket is cut. */
const CLOSE_MS = 500;
/** A viewer that answered this many pings in a row with nothing, and took no bytes, is gone. */
const PINGS_UNANSWERED_MAX = 2;

export function createVncGate(limits: VncLimits): VncGate {
  const options = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false, // RFB compresses for itself
    maxPayload: limits.messageBytesMax,
    closeTimeout: CLOSE_MS,
    handleProtocols: (offered: Set<string>) => offered.has('binary') && 'binary',
  };
  const server = new WebSocketServer(options);

  return {
    async connect(request, head, target, connection, { timeoutMs, whyGone }) {
      const screen = await dial(target, { timeoutMs, signal: connection.signal });
      if (connection.signal.aborted) {
        screen.destroy();
        throw new DialFailed('ended meanwhile');
      }
      const onCut = (): void => {
        screen.destroy();
        connection.closed();
      };
      request.socket.once('close', onCut); // where `ws` finds fault with the handshake
      server.handleUpgrade(request, request.socket, head, (viewer) => {
        request.socket.off('close', onCut);
        bridge(viewer, screen, connection, limits, whyGone);
      });
    },
  };
}

function bridge(
  viewer: WebSocket,
  screen: Socket,
  connection: Connection,
  limits: VncLimits,
  whyGone: () => Promise<string>,
): void {
  const bytes = { fromClient: 0, fromBrowser: 0 };
  const handshake = followHandshake();
  let isClosing = false;

  screen.on('data', (chunk: Buffer) => {
    bytes.fromBrowser += chunk.length;
    handshake.heard('screen', chunk);
    viewer.send(chunk, { binary: true }, onSent);
    if (viewer.bufferedAmount > limits.bufferedBytesMax) screen.pause();
  });
  function onSent(): void {
    if (screen.isPaused() && viewer.bufferedAmount <= limits.bufferedBytesMax / 2) screen.resume();
  }

  viewer.on('message', (data: RawData, isBinary: boolean) => {
    if (isClosing) return;
    if (!isBinary) {
      viewer.close(1003, 'RFB is binary');
      return;
    }
    const chunk = data as Buffer; // binaryType is nodebuffer
    bytes.fromClient += chunk.length;
    handshake.heard('viewer', chunk);
    if (!screen.write(chunk)) viewer.pause();
  });
  screen.on('drain', () => viewer.resume());

  screen.once('end', onScreenGone);
  screen.once('close', onScreenGone);
  function onScreenGone(): void {
    if (isClosing) return;
    if (handshake.isRefused) close('wrong_password');
    else void whyGone().then(close);
  }
  function close(reason: string): void {
    if (isClosing) return;
    isClosing = true;
    screen.destroy();
    viewer.resume(); // else the answer to our Close is never read
    const why = closeOf(reason);
    viewer.close(why.code, why.reason);
    // `ws` waits for ever where the viewer has half-closed already and reads nothing.
    const timer = setTimeout(() => viewer.terminate(), CLOSE_MS);
    viewer.once('close', () => clearTimeout(timer));
  }

  connection.signal.addEventListener('abort', () => close(connection.endedBy ?? ''), {
    once: true,
  });
  viewer.on('error', () => {}); // 'close' follows
  viewer.once('close', () => {
    isClosing = true;
    screen.destroy();
    connection.closed();
  });

  connection.spliced({
    measure: () => ({
      ...bytes,
      waitingForBrowser: screen.writableLength,
      waitingForClient: viewer.bufferedAmount,
    }),
    beat: createPings(viewer, limits.pingEveryMs),
  });
  if (connection.signal.aborted) close(connection.endedBy ?? '');
  else if (screen.destroyed || screen.readableEnded) onScreenGone();
}

/**
 * Pings a viewer. A late pong ends nothing while bytes flow, nor while we do not read because the
 * browser does not (the stall limit is there for that).
 */
function createPings(viewer: WebSocket, everyMs: number) {
  let pingedAtMs: number | null = null;
  let unanswered = 0;
  viewer.on('pong', () => {
    unanswered = 0;
  });
  return (nowMs: number, quietMs: number): string | null => {
    pingedAtMs ??= nowMs;
    if (quietMs === 0 || viewer.isPaused) unanswered = 0;
    if (nowMs - pingedAtMs < everyMs || viewer.readyState !== viewer.OPEN) return null;
    if (unanswered >= PINGS_UNANSWERED_MAX) return 'client_gone';
    pingedAtMs = nowMs;
    unanswered += 1;
    viewer.ping();
    return null;
  };
}
