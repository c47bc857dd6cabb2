import type { Socket } from 'node:net';
import type { BrowserAddress } from '#src/browsers/link/browser-link.ts';
import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import { dial, DialFailed, readResponseHead, settle } from '../connections/dial.ts';

/** Where a session's browser listens; `path` has its GUID, which no other browser has. */
export type CdpEndpoint = BrowserAddress & { path: string };

type Bound = { timeoutMs: number; signal: AbortSignal };

/** A connection to a browser that has said who it is, and what it said: `/json/version`. */
export type OwnBrowser = { socket: Socket; version: string };

/**
 * Connects to the session's browser, and asks on that connection which browser it is. An address is
 * given to another session's browser soon after its own has ended, and neither documents nor page
 * sockets name the browser they belong to. What is sent on the connection afterwards reaches the
 * browser that was asked: an address may pass on, a connection does not.
 * @throws DialFailed if none answers within `timeoutMs`, or if it is another browser
 */
export async function dialOwnBrowser(cdp: CdpEndpoint, bound: Bound): Promise<OwnBrowser> {
  const socket = await dial(cdp, bound);
  const version = await requestDocument(socket, '/json/version', cdp.port, bound);
  if (pathIn(version) === cdp.path) return { socket, version };
  socket.destroy();
  throw new DialFailed('another browser listens at the address of the session’s browser');
}

/** The protocol document has 1.5 MB, a list of a thousand tabs 1 MB. */
export const DOCUMENT_BYTES_MAX = 8 * 1024 * 1024;
/** That of `/json/version` has some hundred bytes. */
const VERSION_BYTES_MAX = 16 * 1024;
const HEAD_END = '\r\n\r\n';

/**
 * Reads a document of a browser on an open connection, which can be used again afterwards.
 * @throws DialFailed if it does not arrive in time, or not with status 200; the socket is destroyed
 */
export async function requestDocument(
  socket: Socket,
  path: string,
  port: number,
  bound: Bound,
  method: 'GET' | 'PUT' = 'GET',
): Promise<string> {
  // Chromium accepts no host name but localhost.
  socket.write(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  const { status, bytes } = await readResponseHead(socket, bound);
  const headEnd = bytes.indexOf(HEAD_END) + HEAD_END.length;
  const head = bytes.toString('latin1', 0, headEnd);
  const length = Number(/^content-length: *(\d{1,9})\r$/im.exec(head)?.[1] ?? Number.NaN);
  if (status === 200 && length <= DOCUMENT_BYTES_MAX)
    return await readBody(socket, bytes.subarray(headEnd), length, bound);
  socket.destroy();
  throw new DialFailed(`the browser answered ${status} with ${length} bytes`);
}

/** Reads the rest of a body of that length, and leaves the socket paused. */
function readBody(socket: Socket, begun: Buffer, length: number, bound: Bound): Promise<string> {
  const chunks: Buffer[] = [];
  let missing = length;
  return settle(socket, bound, (resolve, fail) => {
    socket.on('data', take);
    take(begun);
    if (missing > 0) socket.resume();

    function take(chunk: Buffer): void {
      chunks.push(chunk);
      missing -= chunk.length;
      if (missing > 0) return;
      socket.off('data', take);
      socket.pause();
      if (missing < 0) fail('the browser sent more than its document');
      else resolve(Buffer.concat(chunks).toString('utf8'));
    }
  });
}

/** The path of the browser's WebSocket in its `/json/version`; null: there is none. */
function pathIn(version: string): string | null {
  try {
    const { webSocketDebuggerUrl } = parseForeignJson(version, { bytesMax: VERSION_BYTES_MAX }) as {
      webSocketDebuggerUrl?: unknown;
    };
    return URL.parse(String(webSocketDebuggerUrl))?.pathname ?? null;
  } catch {
    return null;
  }
}
