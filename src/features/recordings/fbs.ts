import { encodings } from './framebuffer.ts';
import type { Segment } from './segment-format.ts';

/**
 * A recording as an FBS file (`FBS 001.000`), which players of RFB sessions read: what a server of
 * RFB 3.3 without a password sends, in blocks of a length (four bytes, big-endian), the bytes,
 * filled up to a multiple of four, and the time in milliseconds since the beginning (four bytes).
 */
export async function* toFbs(
  segments: AsyncIterable<Segment>,
): AsyncGenerator<Uint8Array, void, void> {
  let size: { width: number; height: number } | null = null;
  let beginsAt = 0;
  for await (const { width, height, full, startedAt, messages } of segments) {
    if (size === null) {
      beginsAt = startedAt;
      yield Buffer.from('FBS 001.000\n');
      yield block(serverInit(width, height), 0);
    } else if (full && (size.width !== width || size.height !== height))
      yield block(desktopSize(width, height), startedAt - beginsAt);
    if (size === null || full) size = { width, height };
    for (const { at, bytes } of messages) yield block(bytes, at - beginsAt);
  }
}

function block(bytes: Uint8Array, at: number): Uint8Array {
  const padded = Math.ceil(bytes.length / 4) * 4;
  const made = Buffer.alloc(padded + 8);
  made.writeUInt32BE(bytes.length, 0);
  made.set(bytes, 4);
  made.writeUInt32BE(at, padded + 4);
  return made;
}

/** Version, no security, and the server's greeting. */
function serverInit(width: number, height: number): Uint8Array {
  const name = Buffer.from('recording');
  const init = Buffer.alloc(24);
  init.writeUInt16BE(width, 0);
  init.writeUInt16BE(height, 2);
  init.set([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16], 4);
  init.writeUInt32BE(name.length, 20);
  return Buffer.concat([Buffer.from('RFB 003.003\n'), Buffer.from([0, 0, 0, 1]), init, name]);
}

function desktopSize(width: number, height: number): Uint8Array {
  const message = Buffer.alloc(16);
  message.writeUInt16BE(1, 2);
  message.writeUInt16BE(width, 8);
  message.writeUInt16BE(height, 10);
  message.writeInt32BE(encodings.desktopSize, 12);
  return message;
}
