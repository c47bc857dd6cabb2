import { once } from 'node:events';
import type { Socket } from 'node:net';
import { createCipheriv } from 'node:crypto';
import { connectToBrowser, type BrowserAddress } from '#src/browsers/link/browser-link.ts';
import type { BrowserSpec } from './browsers.ts';

/** A VNC connection that only resizes the screen. */
export type RfbDisplay = {
  /** Resolves when the screen has the size. @throws Error where the server refuses it */
  resize(screen: BrowserSpec['screen']): Promise<void>;
} & Disposable;

/** From RFC 6143 and the community's extension for screens that change their size. */
const VNC_AUTH = 2;
const EXTENDED_DESKTOP_SIZE = -308;
/** What a server says of a length is not believed: a page may have taken over its machine. */
const NAME_BYTES_MAX = 4 * 1024;
const TEXT_BYTES_MAX = 16 * 1024 ** 2;
const PIECE_BYTES = 16 * 1024;
/** Of a rectangle, of which one pixel was asked for; and of messages before the layout comes. */
const RECTANGLE_BYTES_MAX = 64 * 1024;
const MESSAGES_MAX = 1_000;
const BITS_PER_PIXEL = [8, 16, 32];
/** The reason of an update that answers this viewer's own request. */
const REASON_OWN = 1;
/** The area of requested updates; its pixel comes raw, since no other encoding was requested. */
const PIXEL = { x: 0, y: 0, width: 1, height: 1 };

/**
 * Connects to a screen. The connection closes when the signal aborts and when it is disposed of.
 * @throws Error where the server does not speak RFB 3.8 with VncAuth
 */
export async function openDisplay(
  address: BrowserAddress,
  password: string,
  signal: AbortSignal,
): Promise<RfbDisplay> {
  const socket = connectToBrowser(address, { signal });
  // A pending read reports the error; without one it must not crash the process.
  socket.on('error', () => {});
  try {
    const { bytesPerPixel } = await shakeHands(socket, password, signal);
    return {
      resize: (screen) => resize(socket, bytesPerPixel, screen, signal),
      [Symbol.dispose]: () => socket.destroy(),
    };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/**
 * Performs the handshake of a viewer that leaves others connected. Later bytes are not read.
 * @returns the size of the screen, pixels
 * @throws Error where the server does not speak RFB 3.8 with VncAuth, or refuses the password
 */
export async function shakeHands(
  socket: Socket,
  password: string,
  signal: AbortSignal,
): Promise<{ bytesPerPixel: number; width: number; height: number }> {
  const read = (length: number) => take(socket, length, signal);
  const version = (await read(12)).toString('latin1');
  if (version !== 'RFB 003.008\n') throw new Error(`not RFB 3.8 but ${JSON.stringify(version)}`);
  socket.write(version);
  const types = await read((await read(1)).readUInt8());
  if (!types.includes(VNC_AUTH)) throw new Error('the VNC server does not offer VncAuth');
  socket.write(Buffer.from([VNC_AUTH]));
  socket.write(vncAuthResponse(password, await read(16)));
  if ((await read(4)).readUInt32BE() !== 0) throw new Error('the VNC server refuses the password');
  // Shared: a connected viewer stays connected.
  socket.write(Buffer.from([1]));
  const init = await read(24);
  await read(within(NAME_BYTES_MAX, init.readUInt32BE(20), 'a name'));
  const [width, height] = [init.readUInt16BE(0), init.readUInt16BE(2)];
  const bitsPerPixel = init.readUInt8(4);
  if (!BITS_PER_PIXEL.includes(bitsPerPixel))
    throw new Error(`the VNC server has pixels of ${bitsPerPixel} bits`);
  return { bytesPerPixel: bitsPerPixel / 8, width, height };
}

async function resize(
  socket: Socket,
  bytesPerPixel: number,
  screen: BrowserSpec['screen'],
  signal: AbortSignal,
): Promise<void> {
  const updated = (isOurs: boolean) => layoutOf(socket, { bytesPerPixel, isOurs }, signal);
  const encodings = Buffer.from([2, 0, 0, 1, 0, 0, 0, 0]);
  encodings.writeInt32BE(EXTENDED_DESKTOP_SIZE, 4);
  socket.write(Buffer.concat([encodings, updateRequest(0)]));
  // The server's id of the screen: another id would add a screen.
  const { screenId } = await updated(false);
  socket.write(Buffer.concat([setDesktopSize(screen, screenId), updateRequest(1)]));
  const { status } = await updated(true);
  if (status !== 0) throw new Error(`the screen cannot be resized: ${status}`);
}

/** Reads updates until one contains the screen's layout. */
async function layoutOf(
  socket: Socket,
  { bytesPerPixel, isOurs }: { bytesPerPixel: number; isOurs: boolean },
  signal: AbortSignal,
): Promise<{ screenId: number; status: number }> {
  const read = (length: number) => take(socket, length, signal);
  /** Piece by piece, since none is kept. */
  async function pass(bytes: number): Promise<void> {
    for (let left = bytes; left > 0; left -= PIECE_BYTES) await read(Math.min(left, PIECE_BYTES));
  }
  for (let messages = 0; messages < MESSAGES_MAX; messages += 1) {
    const type = (await read(1)).readUInt8();
    if (type === 3) await pass(within(TEXT_BYTES_MAX, (await read(7)).readUInt32BE(3), 'a text'));
    else if (type !== 0 && type !== 2) throw new Error(`unexpected RFB message ${type}`);
    let found: { screenId: number; status: number } | null = null;
    const rectangles = type === 0 ? (await read(3)).readUInt16BE(1) : 0;
    for (let count = 0; count < rectangles; count += 1) {
      const head = await read(12);
      const [reason, status] = [head.readUInt16BE(0), head.readUInt16BE(2)];
      const pixels = head.readUInt16BE(4) * head.readUInt16BE(6);
      if (head.readInt32BE(8) !== EXTENDED_DESKTOP_SIZE)
        await read(within(RECTANGLE_BYTES_MAX, pixels * bytesPerPixel, 'a rectangle'));
      else {
        const screens = await read((await read(4)).readUInt8() * 16);
        if (!isOurs || reason === REASON_OWN)
          found = { screenId: screens.length === 0 ? 0 : screens.readUInt32BE(0), status };
      }
    }
    if (found !== null) return found;
  }
  throw new Error('the VNC server does not tell its layout');
}

/** @throws Error where the server says that a part has more bytes */
function within(bytesMax: number, bytes: number, what: string): number {
  if (bytes > bytesMax) throw new Error(`the VNC server sends ${what} of ${bytes} bytes`);
  return bytes;
}

function updateRequest(incremental: 0 | 1): Buffer {
  const message = Buffer.from([3, incremental, 0, 0, 0, 0, 0, 0, 0, 0]);
  for (const [at, value] of Object.values(PIXEL).entries())
    message.writeUInt16BE(value, 2 + 2 * at);
  return message;
}

/** SetDesktopSize with one screen of the whole size. */
function setDesktopSize({ width, height }: BrowserSpec['screen'], screenId: number): Buffer {
  const message = Buffer.alloc(24);
  message.writeUInt8(251, 0);
  message.writeUInt16BE(width, 2);
  message.writeUInt16BE(height, 4);
  message.writeUInt8(1, 6);
  message.writeUInt32BE(screenId, 8);
  message.writeUInt16BE(width, 16);
  message.writeUInt16BE(height, 18);
  return message;
}

/** Reads exactly `length` bytes. @throws Error where the stream ends before */
async function take(socket: Socket, length: number, signal: AbortSignal): Promise<Buffer> {
  if (length === 0) return Buffer.alloc(0);
  for (;;) {
    const bytes = socket.read(length) as Buffer | null;
    if (bytes?.length === length) return bytes;
    if (bytes !== null || socket.destroyed || socket.readableEnded)
      throw new Error('the VNC server closed the connection');
    await once(socket, 'readable', { signal });
  }
}

/** Resolves when a VNC port has sent its greeting. @throws Error if it sends something else */
export async function rfbReady(address: BrowserAddress, signal: AbortSignal): Promise<void> {
  const socket = connectToBrowser(address, { signal });
  try {
    const closed = once(socket, 'close', { signal }).then(() => null);
    const greeted = once(socket, 'data', { signal }) as Promise<[Buffer]>;
    greeted.catch(() => {});
    closed.catch(() => {});
    const first = await Promise.race([greeted, closed]);
    if (first === null) throw Object.assign(new Error('closed'), { code: 'ECONNRESET' });
    if (!first[0].toString('latin1').startsWith('RFB '))
      throw new Error(`port ${address.port} does not speak RFB`);
  } finally {
    socket.destroy();
  }
}

/**
 * The response to a VncAuth challenge (RFC 6143, 7.2.2).
 * @param password only its first 8 characters count
 * @param challenge 16 bytes
 */
export function vncAuthResponse(password: string, challenge: Uint8Array): Buffer {
  return encrypt(eightBytes(password), challenge);
}

/** Every VNC server hides its password with this key: it hides it from a glance, no more. */
const PASSWORD_FILE_KEY = Buffer.from([23, 82, 107, 6, 35, 78, 88, 7]);

/**
 * The content of a VNC server's password file, as `vncpasswd` writes it.
 * @param password only its first 8 characters count
 */
export function vncPasswordFile(password: string): Buffer {
  return encrypt(PASSWORD_FILE_KEY, eightBytes(password));
}

function eightBytes(password: string): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.write(password, 'latin1');
  return bytes;
}

/**
 * VNC's encryption: single DES with the bits of each key byte reversed. OpenSSL 3 has no single
 * DES; triple DES with three equal keys gives the same result.
 */
function encrypt(key: Uint8Array, bytes: Uint8Array): Buffer {
  const reversed = key.map(reverseBits);
  const cipher = createCipheriv(
    'des-ede3-ecb',
    Buffer.concat([reversed, reversed, reversed]),
    null,
  );
  cipher.setAutoPadding(false);
  return Buffer.concat([cipher.update(bytes), cipher.final()]);
}

function reverseBits(byte: number): number {
  let reversed = 0;
  for (let bit = 0; bit < 8; bit += 1) reversed |= ((byte >> bit) & 1) << (7 - bit);
  return reversed;
}
