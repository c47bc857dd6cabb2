import { encodings, hextile, tilesOf } from '#src/recordings/framebuffer.ts';

/** A FramebufferUpdate as it came. */
export type ScreenUpdate = {
  bytes: Buffer;
  /** How many pixels it has. */
  pixels: number;
  /** The screen's new size; null: as before. */
  size: { width: number; height: number } | null;
};

/**
 * Cuts the bytes of an RFB server into FramebufferUpdates; what else it says (bell, clipboard) is
 * passed over and not kept.
 */
export type UpdateReader = {
  /**
   * @returns the updates that are complete now
   * @throws Error for what is no RFB in the encodings asked for, and beyond the bound
   */
  push(chunk: Buffer): ScreenUpdate[];
};

const BYTES_PER_PIXEL = 4;
/** Twice the raw pixels of the greatest screen: more is no update of ours. */
const MESSAGE_BYTES_MAX = 2 * 3840 * 2160 * BYTES_PER_PIXEL;
const CUT_TEXT_MAX = 16 * 1024 * 1024;
const BUFFER_BYTES = 64 * 1024;

export function createUpdateReader(): UpdateReader {
  const held = createHeldBytes();
  let done: ScreenUpdate[] = [];
  const parsing = parse(held, (update) => done.push(update));
  parsing.next();
  return {
    push(chunk) {
      held.append(chunk);
      done = [];
      parsing.next();
      return done;
    },
  };
}

/** Bytes that came and are not a complete message yet. */
type HeldBytes = {
  append(chunk: Buffer): void;
  /** Waits until that many more bytes are there, and returns them; valid until the next wait. */
  take(length: number): Generator<void, Buffer, void>;
  /** A copy of what was taken since `forget`. */
  taken(): Buffer;
  /** Forgets what was taken: the next message begins. */
  forget(): void;
};

function createHeldBytes(): HeldBytes {
  let buffer = Buffer.alloc(BUFFER_BYTES);
  let [length, at] = [0, 0];
  function copyTo(size: number): void {
    const other = Buffer.alloc(size);
    buffer.copy(other, 0, 0, length);
    buffer = other;
  }
  return {
    append(chunk) {
      const needed = length + chunk.length;
      if (needed > MESSAGE_BYTES_MAX) throw new Error('the screen sends too much');
      if (needed > buffer.length) copyTo(2 * needed);
      chunk.copy(buffer, length);
      length = needed;
    },
    *take(count) {
      for (;;) {
        if (length - at >= count) break;
        yield;
      }
      at += count;
      return buffer.subarray(at - count, at);
    },
    taken: () => Buffer.from(buffer.subarray(0, at)),
    forget() {
      buffer.copy(buffer, 0, at, length);
      length -= at;
      at = 0;
      if (buffer.length > 16 * BUFFER_BYTES && length < BUFFER_BYTES) copyTo(BUFFER_BYTES);
    },
  };
}

function* parse(
  held: HeldBytes,
  found: (update: ScreenUpdate) => void,
): Generator<void, never, void> {
  for (;;) {
    const type = (yield* held.take(1)).readUInt8();
    if (type === 0) found(yield* readUpdate(held));
    else if (type === 3) yield* passText(held);
    else if (type !== 2) throw new Error(`unexpected RFB message ${type}`);
    held.forget();
  }
}

/** Text of the clipboard: passed over piece by piece. */
function* passText(held: HeldBytes): Generator<void, void, void> {
  let left = (yield* held.take(7)).readUInt32BE(3);
  if (left > CUT_TEXT_MAX) throw new Error('the screen sends too much');
  while (left > 0) {
    const length = Math.min(left, BUFFER_BYTES);
    yield* held.take(length);
    held.forget();
    left -= length;
  }
}

function* readUpdate(held: HeldBytes): Generator<void, ScreenUpdate, void> {
  const rectangles = (yield* held.take(3)).readUInt16BE(1);
  let pixels = 0;
  let size: ScreenUpdate['size'] = null;
  for (let index = 0; index < rectangles; index += 1) {
    const head = yield* held.take(12);
    const [x, y] = [head.readUInt16BE(0), head.readUInt16BE(2)];
    const [width, height] = [head.readUInt16BE(4), head.readUInt16BE(6)];
    const encoding = head.readInt32BE(8);
    if (encoding === encodings.desktopSize) {
      size = { width, height };
      continue;
    }
    pixels += width * height;
    if (encoding === encodings.raw) yield* held.take(width * height * BYTES_PER_PIXEL);
    else if (encoding === encodings.copyRect) yield* held.take(4);
    else if (encoding === encodings.hextile)
      for (const tile of tilesOf({ x, y, width, height })) yield* passTile(held, tile);
    else throw new Error(`unknown encoding ${encoding}`);
  }
  return { bytes: held.taken(), pixels, size };
}

type Tile = { width: number; height: number };

function* passTile(held: HeldBytes, { width, height }: Tile): Generator<void, void, void> {
  const kind = (yield* held.take(1)).readUInt8();
  if ((kind & hextile.raw) !== 0) {
    yield* held.take(width * height * BYTES_PER_PIXEL);
    return;
  }
  const colours = ((kind & hextile.background) >> 1) + ((kind & hextile.foreground) >> 2);
  yield* held.take(colours * BYTES_PER_PIXEL);
  if ((kind & hextile.subrectangles) === 0) return;
  const count = (yield* held.take(1)).readUInt8();
  yield* held.take(count * ((kind & hextile.coloured) === 0 ? 2 : 2 + BYTES_PER_PIXEL));
}
