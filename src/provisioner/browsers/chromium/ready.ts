import { WebSocket } from 'ws';
import type { BrowserSpec } from '../browsers.ts';
import { chromiumEnvironment, chromiumFlags, parseListening } from './flags.ts';
import type { CdpEndpoint } from './flags.ts';
import { startChild } from '../process/child.ts';
import type { Child } from '../process/child.ts';
import type { BrowserUser } from '../process/programs.ts';

/**
 * Starts Chromium with one blank page; it picks its own port.
 * @returns the process, and where it listens as soon as it says so
 */
export function startChromium(
  program: string,
  spec: BrowserSpec,
  place: { folder: string; env: Record<string, string>; user: BrowserUser },
): { child: Child; listening: Promise<CdpEndpoint> } {
  const listening = Promise.withResolvers<CdpEndpoint>();
  const args = [
    '--remote-debugging-port=0',
    `--user-data-dir=${place.folder}/profile`,
    ...chromiumFlags(spec),
  ];
  const child = startChild(program, args, {
    env: { ...place.env, ...chromiumEnvironment(spec) },
    cwd: place.folder,
    user: place.user,
    onLine: (line) => {
      const endpoint = parseListening(line);
      if (endpoint !== null) listening.resolve(endpoint);
    },
  });
  return { child, listening: listening.promise };
}

/** Resolves when the browser has answered a command and says that a page is open. */
export async function cdpReady(endpoint: CdpEndpoint, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { host, port, path } = endpoint;
  const socket = new WebSocket(`ws://${host}:${port}${path}`, { perMessageDeflate: false });
  const ready = Promise.withResolvers<void>();
  const abort = (): void => ready.reject(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  let replied = false;
  let pageOpen = false;
  socket.on('open', () => {
    // Its reply is the proof, and it tells of the pages there are and of those to come.
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
