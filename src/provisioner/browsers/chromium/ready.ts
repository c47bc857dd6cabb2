import { WebSocket } from 'ws';
import { connectToBrowser } from '#src/browser-link/browser-link.ts';
import { parseForeignJson } from '#src/foreign/foreign-json.ts';
import type { RunningBrowser } from '../browsers.ts';

/** An address of a page may have 2 MB. */
const MESSAGE_BYTES_MAX = 4 * 1024 ** 2;

/** Resolves when the browser has answered a CDP command and reported an open page. */
export async function cdpReady(address: RunningBrowser['cdp'], signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();

  const { host, port, path } = address;
  const socket = new WebSocket(`ws://${host}:${port}${path}`, {
    perMessageDeflate: false,
    maxPayload: MESSAGE_BYTES_MAX,
    createConnection: () => connectToBrowser(address),
  });
  const ready = Promise.withResolvers<void>();
  const abort = (): void => ready.reject(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  let replied = false;
  let pageOpen = false;
  socket.on('open', () => {
    // Its reply proves that CDP works; its events list the present and future pages.
    const params = { discover: true };
    socket.send(JSON.stringify({ id: 1, method: 'Target.setDiscoverTargets', params }));
  });
  socket.on('message', (data: Buffer) => {
    try {
      const message = parseForeignJson(data, { bytesMax: MESSAGE_BYTES_MAX }) as CdpMessage | null;
      if (message?.id === 1) replied = true;
      if (message?.params?.targetInfo?.type === 'page') pageOpen = true;
      if (replied && pageOpen) ready.resolve();
    } catch (error) {
      // A browser that is adopted may have been taken over by a page.
      ready.reject(error);
    }
  });
  socket.on('error', (error) => ready.reject(error));
  socket.on('close', () => ready.reject(new Error('Chromium closed the CDP socket')));
  try {
    await ready.promise;
  } finally {
    signal.removeEventListener('abort', abort);
    socket.terminate();
  }
}

type CdpMessage = { id?: number; params?: { targetInfo?: { type?: string } } };
