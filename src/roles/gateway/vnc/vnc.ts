import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocketServer, type RawData, type WebSocket } from 'ws';
import type { BrowserAddress } from '#src/browsers/link/browser-link.ts';
import { reject } from '#src/kernel/errors.ts';
import { dialOwnBrowser, type CdpEndpoint } from '../cdp/own-browser.ts';
import { closeOf } from '../connections/close-codes.ts';
import type { Connection } from '../connections/connection.ts';
import { dial, DialFailed } from '../connections/dial.ts';
import type { ClientHandshake } from '../connections/handshake.ts';
import { rejectUpgrade } from '../error-response.ts';
import { createRfbFilter } from './rfb-filter.ts';
import { observeHandshake } from './rfb-handshake.ts';

export type VncLimits = {
  /** With this many unsent bytes for a viewer, the browser is not read; see `stalledMs`. */
  bufferedBytesMax: number;
  /** Size of one message of a viewer; noVNC sends far smaller ones. */
  messageBytesMax: number;
  /** Under 30 s, since load balancers cut connections that are silent for 60 s. */
  pingEveryMs: number;
};

/** A screen, and the browser it belongs to. */
export type ScreenTarget = { vnc: BrowserAddress; cdp: CdpEndpoint };

export type VncGate = {
  /**
   * Connects a viewer's WebSocket to its screen: RFB in binary messages of any length. Resolves
   * once bytes flow. `endReason` is called when the screen closes first, unless it has just refused
   * the viewer's password.
   * @throws DialFailed if the screen does not answer, or another browser has its address, before
   * anything was sent to either side.
   */
  connect(
    handshake: ClientHandshake,
    target: ScreenTarget,
    connection: Connection,
    options: { timeoutMs: number; endReason: () => Promise<string> },
  ): Promise<void>;
};

/** How long a viewer has to answer the gateway's Close before its socket is cut. */
const CLOSE_MS = 500;
/** A viewer that left this many consecutive pings unanswered and took no bytes is gone. */
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
  const headersOf = new WeakMap<IncomingMessage, Record<string, number>>();
  server.on('headers', (lines, request) => {
    for (const [name, value] of Object.entries(headersOf.get(request) ?? {}))
      lines.push(`${name}: ${value}`);
  });
  server.on('wsClientError', (_error, socket, request) =>
    rejectUpgrade(socket, reject('INVALID_REQUEST'), headersOf.get(request) ?? {}),
  );

  return {
    async connect({ request, head, headers }, target, connection, { timeoutMs, endReason }) {
      const screen = await dialOwnScreen(target, { timeoutMs, signal: connection.signal });
      if (connection.signal.aborted) {
        screen.destroy();
        throw new DialFailed('the connection was ended');
      }
      const onCut = (): void => {
        screen.destroy();
        connection.closed();
      };
      headersOf.set(request, headers);
      request.socket.once('close', onCut); // `ws` closes the socket of an invalid handshake
      server.handleUpgrade(request, request.socket, head, (viewer) => {
        request.socket.off('close', onCut);
        bridge(viewer, screen, connection, limits, endReason);
      });
    },
  };
}

/**
 * Connects to the screen, and then makes sure that the session's browser is still there. In this
 * order no other session's screen is reached: the address of a browser that has ended never comes
 * back to it, so one that is there now was there when the screen was dialled.
 */
async function dialOwnScreen(
  { vnc, cdp }: ScreenTarget,
  bound: { timeoutMs: number; signal: AbortSignal },
): Promise<Socket> {
  const screen = await dial(vnc, bound);
  try {
    const { socket } = await dialOwnBrowser(cdp, bound);
    socket.destroy();
    return screen;
  } catch (error) {
    screen.destroy();
    throw error;
  }
}

function bridge(
  viewer: WebSocket,
  screen: Socket,
  connection: Connection,
  limits: VncLimits,
  endReason: () => Promise<string>,
): void {
  const bytes = { fromClient: 0, fromBrowser: 0 };
  const handshake = observeHandshake();
  let isClosing = false;

  screen.on('data', (chunk: Buffer) => {
    bytes.fromBrowser += chunk.length;
    handshake.observe('screen', chunk);
    viewer.send(chunk, { binary: true }, onSent);
    if (viewer.bufferedAmount > limits.bufferedBytesMax) screen.pause();
  });
  function onSent(): void {
    if (screen.isPaused() && viewer.bufferedAmount <= limits.bufferedBytesMax / 2) screen.resume();
  }

  fromViewer(viewer, screen, connection, {
    isClosing: () => isClosing,
    onRefused: close,
    onChunk(chunk) {
      bytes.fromClient += chunk.length;
      handshake.observe('viewer', chunk);
    },
  });

  screen.once('end', onScreenGone);
  screen.once('close', onScreenGone);
  function onScreenGone(): void {
    if (isClosing) return;
    if (handshake.isRefused) close('wrong_password');
    else void endReason().then(close);
  }
  function close(reason: string): void {
    if (isClosing) return;
    isClosing = true;
    screen.destroy();
    viewer.resume(); // or the viewer's answer to the Close is never read
    const why = closeOf(reason);
    viewer.close(why.code, why.reason);
    // `ws` waits for ever if the viewer has half-closed already and reads nothing.
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

/** Passes on what the viewer sends, but for what it may not send. */
function fromViewer(
  viewer: WebSocket,
  screen: Socket,
  connection: Connection,
  hooks: { isClosing(): boolean; onChunk(chunk: Buffer): void; onRefused(reason: string): void },
): void {
  const filter = createRfbFilter(() => connection.maySteer());
  viewer.on('message', (data: RawData, isBinary: boolean) => {
    if (hooks.isClosing()) return;
    if (!isBinary) {
      viewer.close(1003, 'RFB is binary');
      return;
    }
    const chunk = data as Buffer; // binaryType is nodebuffer
    hooks.onChunk(chunk);
    const passed = filter.take(chunk);
    if (passed === null) {
      refuse();
      return;
    }
    for (const bytes of passed) if (!screen.write(bytes)) viewer.pause();
  });
  screen.on('drain', () => viewer.resume());
  connection.onSteering(refuse);
  function refuse(): void {
    const reason = filter.refusal();
    if (reason !== null) hooks.onRefused(reason);
  }
}

/**
 * Pings a viewer. A missing pong does not end the connection while bytes flow, nor while the viewer
 * is paused because the browser does not read (the stall limit covers that).
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
