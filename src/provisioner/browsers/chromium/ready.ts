import { WebSocket } from 'ws';
import { connectToBrowser } from '#src/browser-link/browser-link.ts';
import type { RunningBrowser } from '../browsers.ts';

/** Resolves when the browser has answered a CDP command and reported an open page. */
export async function cdpReady(address: RunningBrowser['cdp'], signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();

  const { host, port, path } = address;
  const socket = new WebSocket(`ws://${host}:${port}${path}`, {
    perMessageDeflate: false,
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
  socket.on('message', (data) => {
    const message = JSON.parse((data as Buffer).toString()) as CdpMessage;
    if (message.id === 1) replied = true;
    if (message.params?.targetInfo?.type === 'page') pageOpen = true;
    if (replied && pageOpen) ready.resolve();
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
