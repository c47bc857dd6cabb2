import type { Socket } from 'node:net';
import { connectToBrowser, type BrowserAddress } from '#src/browsers/link/browser-link.ts';
import { encodings } from '#src/features/recordings/framebuffer.ts';
import { shakeHands } from '#src/browsers/rfb.ts';
import { createUpdateReader, type ScreenUpdate } from './update-reader.ts';

/** A second viewer of a browser's screen, which only watches. */
export type Screen = {
  /** Pixels; as of the last update. */
  readonly width: number;
  readonly height: number;
  /**
   * Asks for what has changed since the last update, or for the whole screen. Resolves when that
   * has come: while nothing changes there is no update. One at a time.
   * @throws Error once the connection has ended
   */
  update(what: 'changes' | 'all'): Promise<ScreenUpdate>;
} & Disposable;

export type OpenScreen = (
  address: BrowserAddress,
  password: string,
  signal: AbortSignal,
) => Promise<Screen>;

const CONNECT_WITHIN_MS = 5_000;
/** A server may tell of a new size by an update of its own. */
const UNASKED_MAX = 4;
/** 32 bits, little-endian; red in the lowest byte, then green and blue. */
const SET_PIXEL_FORMAT = Buffer.alloc(20);
SET_PIXEL_FORMAT.set([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16], 4);
/** None of them carries anything from one message to the next, as those with zlib do. */
const ENCODINGS = [
  encodings.copyRect,
  encodings.hextile,
  encodings.raw,
  encodings.desktopSize,
] as const;

/**
 * Connects to a screen. The connection ends when the signal aborts and when it is disposed of.
 * @throws Error where there is no screen within 5 s
 */
export const openScreen: OpenScreen = async (address, password, signal) => {
  const socket = connectToBrowser(address, { signal });
  // A pending update reports the error; without one it must not crash the process.
  socket.on('error', () => {});
  try {
    const late = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_WITHIN_MS)]);
    const shown = await shakeHands(socket, password, late);
    socket.write(Buffer.concat([SET_PIXEL_FORMAT, setEncodings()]));
    return watch(socket, shown);
  } catch (error) {
    socket.destroy();
    throw error;
  }
};

function watch(socket: Socket, shown: { width: number; height: number }): Screen {
  const reader = createUpdateReader(shown);
  const came: ScreenUpdate[] = [];
  let waiting: PromiseWithResolvers<ScreenUpdate> | null = null;
  let failure: Error | null = null;
  let { width, height } = shown;
  /** Updates that were asked for and have not been taken. */
  let asked = 0;

  function settle(): void {
    if (waiting === null) return;
    const next = came.shift();
    if (next !== undefined) {
      asked -= 1;
      if (next.size !== null) ({ width, height } = next.size);
      waiting.resolve(next);
    } else if (failure !== null) waiting.reject(failure);
    else return;
    waiting = null;
  }
  function end(error: Error): void {
    failure ??= error;
    socket.destroy();
    settle();
  }
  socket.on('error', end);
  socket.on('close', () => end(new Error('the VNC server closed the connection')));
  socket.on('data', (chunk: Buffer) => {
    try {
      came.push(...reader.push(chunk));
      if (came.length > asked + UNASKED_MAX)
        throw new Error('the screen sends updates that were not asked for');
    } catch (error) {
      end(error as Error);
    }
    settle();
    // Nothing more is read before it is asked for: the screen's server waits.
    if (waiting === null) socket.pause();
  });
  socket.pause();

  return {
    get width() {
      return width;
    },
    get height() {
      return height;
    },
    update(what) {
      waiting = Promise.withResolvers();
      const { promise } = waiting;
      asked += 1;
      if (failure === null) socket.write(updateRequest(what, width, height));
      settle();
      if (waiting !== null) socket.resume();
      return promise;
    },
    [Symbol.dispose]: () => socket.destroy(),
  };
}

function setEncodings(): Buffer {
  const message = Buffer.alloc(4 + 4 * ENCODINGS.length);
  message.writeUInt8(2, 0);
  message.writeUInt16BE(ENCODINGS.length, 2);
  for (const [index, encoding] of ENCODINGS.entries())
    message.writeInt32BE(encoding, 4 + 4 * index);
  return message;
}

function updateRequest(what: 'changes' | 'all', width: number, height: number): Buffer {
  const message = Buffer.from([3, what === 'changes' ? 1 : 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  message.writeUInt16BE(width, 6);
  message.writeUInt16BE(height, 8);
  return message;
}
