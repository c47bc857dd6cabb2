import { encodings, hextile, tilesOf } from '#src/features/recordings/framebuffer.ts';

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

type Size = { width: number; height: number };

const BYTES_PER_PIXEL = 4;
/** Of the greatest screen that a session may have. */
const PIXELS_MAX = 3840 * 2160;
/** Heads of rectangles and of tiles: the greatest number of rectangles has 0.8 MB of them. */
const HEADS_BYTES_MAX = 2 * 1024 ** 2;
const CUT_TEXT_MAX = 16 * 1024 * 1024;
/** Between two updates: bells and texts of the clipboard, and the bytes of the texts. */
const OTHERS_MAX = 1_000;
const OTHERS_BYTES_MAX = 4 * CUT_TEXT_MAX;
const BUFFER_BYTES = 64 * 1024;

/**
 * @param screen its size at first
 * @throws Error where it is larger than a screen may be
 */
export function createUpdateReader(screen: Size): UpdateReader {
  requireSize(screen);
  const held = createHeldBytes();
  let done: ScreenUpdate[] = [];
  const parsing = parse(held, { ...screen }, (update) => done.push(update));
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

function requireSize({ width, height }: Size): void {
  if (width * height > PIXELS_MAX) throw new Error('the screen is larger than it may be');
}

/** Raw pixels are the longest encoding; the end of the message before is held, too. */
function messageBytesMax({ width, height }: Size): number {
  return width * height * BYTES_PER_PIXEL + HEADS_BYTES_MAX;
}

/** Bytes that came and are not a complete message yet. */
type HeldBytes = {
  append(chunk: Buffer): void;
  /** @param max bytes of what is held, from here on */
  bound(max: number): void;
  /** Waits until that many more bytes are there, and returns them; valid until the next wait. */
  take(length: number): Generator<void, Buffer, void>;
  /** A copy of what was taken since `forget`. */
  taken(): Buffer;
  /** Forgets what was taken: the next message begins. */
  forget(): void;
};

function createHeldBytes(): HeldBytes {
  let buffer = Buffer.alloc(BUFFER_BYTES);
  /** The message that is read begins at `from`, and is read up to `at`. */
  let [from, at, length] = [0, 0, 0];
  let bytesMax = HEADS_BYTES_MAX;
  /** Moves what is not forgotten to the beginning, of another buffer if the size is another. */
  function compact(size: number): void {
    const other = size === buffer.length ? buffer : Buffer.alloc(size);
    buffer.copy(other, 0, from, length);
    buffer = other;
    [from, at, length] = [0, at - from, length - from];
  }
  return {
    append(chunk) {
      const needed = length - from + chunk.length;
      if (needed > bytesMax) throw new Error('the screen sends too much');
      const isLarge = buffer.length > 16 * BUFFER_BYTES;
      if (needed > buffer.length) compact(Math.min(2 * needed, bytesMax));
      else if (isLarge && needed < BUFFER_BYTES) compact(BUFFER_BYTES);
      else if (from > 0) compact(buffer.length);
      chunk.copy(buffer, length);
      length += chunk.length;
    },
    bound: (max) => void (bytesMax = max),
    *take(count) {
      for (;;) {
        if (length - at >= count) break;
        yield;
      }
      at += count;
      return buffer.subarray(at - count, at);
    },
    taken: () => Buffer.from(buffer.subarray(from, at)),
    forget: () => void (from = at),
  };
}

function* parse(
  held: HeldBytes,
  screen: Size,
  found: (update: ScreenUpdate) => void,
): Generator<void, never, void> {
  let [others, othersBytes] = [0, 0];
  for (;;) {
    held.bound(messageBytesMax(screen));
    const type = (yield* held.take(1)).readUInt8();
    if (type === 0) {
      found(yield* readUpdate(held, screen));
      [others, othersBytes] = [0, 0];
    } else if (type === 3) othersBytes += yield* passText(held);
    else if (type !== 2) throw new Error(`unexpected RFB message ${type}`);
    others += 1;
    if (others > OTHERS_MAX || othersBytes > OTHERS_BYTES_MAX)
      throw new Error('the screen sends too much');
    held.forget();
  }
}

/** Text of the clipboard: passed over piece by piece. */
function* passText(held: HeldBytes): Generator<void, number, void> {
  const bytes = (yield* held.take(7)).readUInt32BE(3);
  let left = bytes;
  if (left > CUT_TEXT_MAX) throw new Error('the screen sends too much');
  while (left > 0) {
    const length = Math.min(left, BUFFER_BYTES);
    yield* held.take(length);
    held.forget();
    left -= length;
  }
  return bytes;
}

/** Each rectangle lies on the screen, and all together cover it twice at most. */
function* readUpdate(held: HeldBytes, screen: Size): Generator<void, ScreenUpdate, void> {
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
      requireSize(size);
      Object.assign(screen, size);
      held.bound(messageBytesMax(screen));
      continue;
    }
    if (x + width > screen.width || y + height > screen.height)
      throw new Error('a rectangle is outside of the screen');
    pixels += width * height;
    if (pixels > 2 * screen.width * screen.height) throw new Error('the screen sends too much');
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
