/**
 * What a recording's screen shows: applies FramebufferUpdates (RFC 6143, 7.6.1) to pixels. It knows
 * the encodings that the recorder asks for, which carry nothing from one message to the next: Raw,
 * CopyRect, Hextile, and DesktopSize. It runs in the page that plays a recording, too.
 */
export type Framebuffer = {
  readonly width: number;
  readonly height: number;
  /** Red, green, blue, alpha of each pixel, row by row; a new array after `resize`. */
  readonly pixels: Uint8ClampedArray<ArrayBuffer>;
  /** Gives it a size; another one than before makes it black. */
  resize(width: number, height: number): void;
  /** Applies a FramebufferUpdate. @throws Error for a message that is none, or is cut off */
  apply(message: Uint8Array): void;
};

export const encodings = { raw: 0, copyRect: 1, hextile: 5, desktopSize: -223 } as const;
/** Subencodings of a Hextile tile: bits of its first byte. */
export const hextile = {
  raw: 1,
  background: 2,
  foreground: 4,
  subrectangles: 8,
  coloured: 16,
  side: 16,
} as const;

const BYTES_PER_PIXEL = 4;
const OPAQUE = 0xff00_0000;

type Area = { x: number; y: number; width: number; height: number };

/** The pixels and, in `words`, the same memory with a pixel each, little-endian as everywhere. */
type Picture = {
  width: number;
  height: number;
  pixels: Uint8ClampedArray<ArrayBuffer>;
  words: Uint32Array<ArrayBuffer>;
};

/** A screen without a size: give it one, or apply a message that does. */
export function createFramebuffer(): Framebuffer {
  const picture: Picture = {
    width: 0,
    height: 0,
    pixels: new Uint8ClampedArray(0),
    words: new Uint32Array(0),
  };
  return {
    get width() {
      return picture.width;
    },
    get height() {
      return picture.height;
    },
    get pixels() {
      return picture.pixels;
    },
    resize: (width, height) => resize(picture, width, height),
    apply: (message) => apply(picture, message),
  };
}

function resize(picture: Picture, width: number, height: number): void {
  if (width === picture.width && height === picture.height) return;
  const pixels = new Uint8ClampedArray(width * height * BYTES_PER_PIXEL);
  const words = new Uint32Array(pixels.buffer).fill(OPAQUE);
  Object.assign(picture, { width, height, pixels, words });
}

function apply(picture: Picture, message: Uint8Array): void {
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  if (view.getUint8(0) !== 0) throw new Error('not a FramebufferUpdate');
  const rectangles = view.getUint16(2);
  let at = 4;
  for (let index = 0; index < rectangles; index += 1) {
    const area = {
      x: view.getUint16(at),
      y: view.getUint16(at + 2),
      width: view.getUint16(at + 4),
      height: view.getUint16(at + 6),
    };
    at = applyRectangle(picture, area, view.getInt32(at + 8), view, at + 12);
  }
}

/** @returns where the rectangle ends */
function applyRectangle(
  picture: Picture,
  area: Area,
  encoding: number,
  view: DataView,
  at: number,
): number {
  if (encoding === encodings.desktopSize) {
    resize(picture, area.width, area.height);
    return at;
  }
  if (area.x + area.width > picture.width || area.y + area.height > picture.height)
    throw new Error('a rectangle is outside of the screen');
  switch (encoding) {
    case encodings.raw:
      return copyRaw(picture, area, view, at);
    case encodings.copyRect:
      copyWithin(picture, area, view.getUint16(at), view.getUint16(at + 2));
      return at + 4;
    case encodings.hextile:
      return applyHextile(picture, area, view, at);
    default:
      throw new Error(`unknown encoding ${encoding}`);
  }
}

function fill({ words, width }: Picture, area: Area, colour: number): void {
  for (let row = area.y; row < area.y + area.height; row += 1)
    words.fill(colour, row * width + area.x, row * width + area.x + area.width);
}

/** @returns where the pixels end */
function copyRaw({ words, width }: Picture, area: Area, view: DataView, at: number): number {
  let from = at;
  for (let row = area.y; row < area.y + area.height; row += 1) {
    const begin = row * width + area.x;
    for (let index = begin; index < begin + area.width; index += 1) {
      words[index] = view.getUint32(from, true) | OPAQUE;
      from += BYTES_PER_PIXEL;
    }
  }
  return from;
}

function copyWithin({ words, width }: Picture, area: Area, fromX: number, fromY: number): void {
  const rows = Array.from({ length: area.height }, (_, index) => index);
  // From the last row on where the target is below: a row is read before it is written.
  for (const row of fromY < area.y ? rows.toReversed() : rows) {
    const from = (fromY + row) * width + fromX;
    words.copyWithin((area.y + row) * width + area.x, from, from + area.width);
  }
}

/** @returns where the tiles end */
function applyHextile(picture: Picture, area: Area, view: DataView, begin: number): number {
  let at = begin;
  let [background, foreground] = [OPAQUE, OPAQUE];
  const byte = () => {
    at += 1;
    return view.getUint8(at - 1);
  };
  const colour = () => {
    at += BYTES_PER_PIXEL;
    return view.getUint32(at - BYTES_PER_PIXEL, true) | OPAQUE;
  };
  for (const tile of tilesOf(area)) {
    const kind = byte();
    if ((kind & hextile.raw) !== 0) {
      at = copyRaw(picture, tile, view, at);
      continue;
    }
    if ((kind & hextile.background) !== 0) background = colour();
    if ((kind & hextile.foreground) !== 0) foreground = colour();
    fill(picture, tile, background);
    const count = (kind & hextile.subrectangles) === 0 ? 0 : byte();
    for (let index = 0; index < count; index += 1) {
      const painted = (kind & hextile.coloured) === 0 ? foreground : colour();
      const [place, size] = [byte(), byte()];
      const [x, y] = [tile.x + (place >> 4), tile.y + (place & 15)];
      fill(picture, { x, y, width: (size >> 4) + 1, height: (size & 15) + 1 }, painted);
    }
  }
  return at;
}

/** The tiles of a Hextile rectangle in their order: rows of squares, smaller at the edges. */
export function* tilesOf(area: Area): Generator<Area, void, void> {
  const { side } = hextile;
  for (let y = area.y; y < area.y + area.height; y += side)
    for (let x = area.x; x < area.x + area.width; x += side) {
      const width = Math.min(side, area.x + area.width - x);
      yield { x, y, width, height: Math.min(side, area.y + area.height - y) };
    }
}
