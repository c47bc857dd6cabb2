import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { connectToBrowser, type BrowserAddress } from '#src/browsers/link/browser-link.ts';
import { vncAuthResponse } from '#src/browsers/rfb.ts';

/** A viewer of a screen; ends with its stream. */
export type RfbClient = {
  width: number;
  height: number;
  /** The server's name for the screen. */
  name: string;
  /** Requests the whole screen; 4 bytes a pixel: red, green, blue, 255. */
  framebuffer(): Promise<Uint8Array>;
  /** Presses or releases a key, named by the X keysym of its character. */
  key(keysym: number, isDown: boolean): void;
} & Disposable;

/** The server refused this viewer, with the server's message. */
export class RfbRefused extends Error {
  override readonly name = 'RfbRefused';
}

/** The longest a server may take for one answer. */
const ANSWER_MS_MAX = 60_000;
const VNC_AUTH = 2;

/**
 * Speaks RFB 3.8 with VncAuth over a byte stream: a TCP socket, or a WebSocket through
 * `createWebSocketStream`.
 * @throws RfbRefused if the password is wrong; Error if the stream ends or the server sends an
 * unexpected message
 */
export async function connectRfb(stream: Duplex, password: string): Promise<RfbClient> {
  const reader = readerOf(stream);
  const version = (await reader(12)).toString('latin1');
  if (version !== 'RFB 003.008\n') throw new Error(`not RFB 3.8 but ${JSON.stringify(version)}`);
  stream.write(version);

  const [typeCount = 0] = await reader(1);
  if (typeCount === 0) throw new RfbRefused(await readReason(reader));
  const types = await reader(typeCount);
  if (!types.includes(VNC_AUTH)) throw new Error(`no VncAuth among ${types.join(', ')}`);
  stream.write(Buffer.from([VNC_AUTH]));
  stream.write(vncAuthResponse(password, await reader(16)));
  if ((await reader(4)).readUInt32BE() !== 0) throw new RfbRefused(await readReason(reader));

  stream.write(Buffer.from([1])); // shared
  const init = await reader(24);
  const width = init.readUInt16BE(0);
  const height = init.readUInt16BE(2);
  const name = (await reader(init.readUInt32BE(20))).toString('utf8');
  stream.write(setPixelFormat());
  stream.write(Buffer.from([2, 0, 0, 1, 0, 0, 0, 0])); // SetEncodings: raw alone
  return {
    width,
    height,
    name,
    framebuffer: () => {
      stream.write(updateRequest(width, height));
      return readScreen(reader, width, height);
    },
    key: (keysym, isDown) => {
      stream.write(keyEvent(keysym, isDown));
    },
    [Symbol.dispose]: () => stream.destroy(),
  };
}

/** The same on a browser's VNC socket. */
export async function dialRfb(address: BrowserAddress, password: string): Promise<RfbClient> {
  const socket = connectToBrowser(address);
  try {
    const signal = AbortSignal.timeout(ANSWER_MS_MAX);
    await once(socket, address.linkKey === undefined ? 'connect' : 'secureConnect', { signal });
    return await connectRfb(socket, password);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** The colour at a position, as `#rrggbb`. */
export function colourAt(client: RfbClient, pixels: Uint8Array, x: number, y: number): string {
  const start = (y * client.width + x) * 4;
  return `#${Buffer.from(pixels.subarray(start, start + 3)).toString('hex')}`;
}

type Reader = (length: number) => Promise<Buffer>;

/** Reads exactly the requested number of bytes; one read at a time. */
function readerOf(stream: Duplex): Reader {
  let held = Buffer.alloc(0);
  let wanted: { length: number; give: (bytes: Buffer) => void; fail: (e: Error) => void } | null =
    null;
  let ended: Error | null = null;
  const settle = (): void => {
    if (wanted === null) return;
    const { length, give, fail } = wanted;
    if (held.length < length && ended === null) return;
    wanted = null;
    if (held.length < length) return fail(ended ?? new Error('too few bytes'));
    give(held.subarray(0, length));
    held = held.subarray(length);
  };
  const end = (error: Error): void => {
    ended ??= error;
    settle();
  };
  stream.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    settle();
  });
  stream.on('error', end);
  for (const event of ['end', 'close'])
    stream.on(event, () => end(new Error('the RFB stream has ended')));
  return async (length) => {
    const late = setTimeout(() => {
      stream.destroy(new Error(`no RFB answer within ${ANSWER_MS_MAX} ms`));
    }, ANSWER_MS_MAX);
    try {
      return await new Promise<Buffer>((give, fail) => {
        wanted = { length, give, fail };
        settle();
      });
    } finally {
      clearTimeout(late);
    }
  };
}

async function readReason(reader: Reader): Promise<string> {
  return (await reader((await reader(4)).readUInt32BE())).toString('utf8');
}

/** Reads messages until rectangles have covered the screen once. */
async function readScreen(reader: Reader, width: number, height: number): Promise<Uint8Array> {
  const pixels = new Uint8Array(width * height * 4);
  for (let missing = width * height; missing > 0;) {
    const [type = 0] = await reader(1);
    if (type === 0) missing -= await readUpdate(reader, pixels, width);
    else if (type === 3) await reader((await reader(7)).readUInt32BE(3));
    else if (type !== 2) throw new Error(`unexpected RFB message ${type}`);
  }
  for (let index = 3; index < pixels.length; index += 4) pixels[index] = 255;
  return pixels;
}

/** Copies one update into the screen and returns its number of pixels. */
async function readUpdate(reader: Reader, pixels: Uint8Array, width: number): Promise<number> {
  let painted = 0;
  const rectangles = (await reader(3)).readUInt16BE(1);
  for (let count = 0; count < rectangles; count += 1) {
    const head = await reader(12);
    const [x, y, w, h] = [0, 2, 4, 6].map((at) => head.readUInt16BE(at)) as Rectangle;
    if (head.readInt32BE(8) !== 0) throw new Error(`encoding ${head.readInt32BE(8)} is not raw`);
    const raw = await reader(w * h * 4);
    for (let row = 0; row < h; row += 1) {
      pixels.set(raw.subarray(row * w * 4, (row + 1) * w * 4), ((y + row) * width + x) * 4);
    }
    painted += w * h;
  }
  return painted;
}

type Rectangle = [x: number, y: number, w: number, h: number];

/** 32 bits little-endian with red in the lowest byte: red, green, blue, nothing. */
function setPixelFormat(): Buffer {
  return Buffer.from([0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0]);
}

function keyEvent(keysym: number, isDown: boolean): Buffer {
  const message = Buffer.from([4, isDown ? 1 : 0, 0, 0, 0, 0, 0, 0]);
  message.writeUInt32BE(keysym, 4);
  return message;
}

function updateRequest(width: number, height: number): Buffer {
  const message = Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  message.writeUInt16BE(width, 6);
  message.writeUInt16BE(height, 8);
  return message;
}
