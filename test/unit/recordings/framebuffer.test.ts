import { describe, expect, it } from 'vitest';
import { createUpdateReader } from '#src/features/recordings/recorder/update-reader.ts';
import { createFramebuffer } from '#src/features/recordings/framebuffer.ts';
import { messageHead, readSegment, segmentHead } from '#src/features/recordings/segment-format.ts';

/** The encodings of a recording: what the decoder makes of them, and where the reader cuts. */

const BLUE = [10, 20, 200, 0];
const WHITE = [255, 255, 255, 0];

function update(...rectangles: number[][]): Buffer {
  return Buffer.from([0, 0, 0, rectangles.length, ...rectangles.flat()]);
}
function head(x: number, y: number, width: number, height: number, encoding: number): number[] {
  const bytes = Buffer.alloc(12);
  for (const [index, value] of [x, y, width, height].entries())
    bytes.writeUInt16BE(value, 2 * index);
  bytes.writeInt32BE(encoding, 8);
  return [...bytes];
}
const pixel = (shown: ReturnType<typeof createFramebuffer>, x: number, y: number) => [
  ...shown.pixels.subarray((y * shown.width + x) * 4, (y * shown.width + x) * 4 + 4),
];
const opaque = ([red = 0, green = 0, blue = 0]: number[]) => [red, green, blue, 255];

/** A tile of a background with a subrectangle, and one of raw pixels; the second is 4 wide. */
const tiles = [
  ...head(0, 0, 20, 16, 5),
  ...[2 | 4 | 8, ...BLUE, ...WHITE, 1, 0x23, 0x10],
  ...[1, ...Array.from({ length: 4 * 16 }, () => WHITE).flat()],
];
/** A tile whose subrectangles have their own colours; the background is that of before. */
const coloured = [...head(0, 0, 16, 16, 5), 8 | 16, 2, ...WHITE, 0x00, 0x00, ...BLUE, 0xff, 0x00];

describe('a framebuffer', () => {
  it('paints tiles of Hextile: background, subrectangles, raw pixels', () => {
    const shown = createFramebuffer();
    shown.resize(20, 16);
    shown.apply(update(tiles));
    expect(pixel(shown, 0, 0)).toEqual(opaque(BLUE));
    expect([pixel(shown, 2, 3), pixel(shown, 3, 3)]).toEqual([opaque(WHITE), opaque(WHITE)]);
    expect([pixel(shown, 4, 3), pixel(shown, 2, 4)]).toEqual([opaque(BLUE), opaque(BLUE)]);
    expect(pixel(shown, 16, 15)).toEqual(opaque(WHITE));
    shown.apply(update(coloured));
    expect([pixel(shown, 0, 0), pixel(shown, 15, 15)]).toEqual([opaque(WHITE), opaque(BLUE)]);
    expect(pixel(shown, 7, 7)).toEqual([0, 0, 0, 255]);
  });

  it.each([
    ['up', 2, 0],
    ['down', 0, 2],
  ])('copies an area that overlaps %s', (_, from, to) => {
    const shown = createFramebuffer();
    shown.resize(2, 6);
    const rows = [0, 1, 2, 3, 4, 5].flatMap((row) => [row, 0, 0, 0, row, 0, 0, 0]);
    shown.apply(update([...head(0, 0, 2, 6, 0), ...rows]));
    shown.apply(update([...head(0, to, 2, 4, 1), 0, 0, 0, from]));
    const moved = [0, 1, 2, 3].map((row) => pixel(shown, 1, to + row)[0]);
    expect(moved).toEqual([0, 1, 2, 3].map((row) => row + from));
  });

  it('takes on another size, black', () => {
    const shown = createFramebuffer();
    shown.apply(update(head(0, 0, 3, 2, -223)));
    expect([shown.width, shown.height, shown.pixels.length]).toEqual([3, 2, 24]);
    expect(pixel(shown, 2, 1)).toEqual([0, 0, 0, 255]);
  });

  it('refuses what it cannot show', () => {
    const shown = createFramebuffer();
    shown.resize(4, 4);
    expect(() => shown.apply(update([...head(1, 0, 4, 4, 0)]))).toThrow('outside');
    expect(() => shown.apply(update([...head(0, 0, 4, 4, 16)]))).toThrow('encoding 16');
    expect(() => shown.apply(update([...head(0, 0, 4, 4, 0), 1, 2]))).toThrow(RangeError);
    expect(() => shown.apply(Buffer.from([2]))).toThrow('FramebufferUpdate');
  });
});

describe('the reader of a screen', () => {
  const screen = { width: 64, height: 48 };
  const bell = Buffer.from([2]);
  const clipboard = Buffer.from([3, 0, 0, 0, 0, 0, 0, 2, 65, 66]);
  const sent = [update(tiles), update(coloured, head(0, 0, 30, 20, -223))];
  const stream = Buffer.concat([bell, sent[0] ?? bell, clipboard, sent[1] ?? bell, bell]);

  it.each([1, 7, 64, 10_000])('finds each update in pieces of %i bytes', (size) => {
    const reader = createUpdateReader({ width: 20, height: 16 });
    const found = [];
    for (let at = 0; at < stream.length; at += size)
      found.push(...reader.push(stream.subarray(at, at + size)));
    expect(found.map(({ bytes }) => bytes)).toEqual(sent);
    expect(found.map(({ pixels, size: to }) => [pixels, to])).toEqual([
      [20 * 16, null],
      [16 * 16, { width: 30, height: 20 }],
    ]);
  });

  it.each([
    ['another message', Buffer.from([9])],
    ['another encoding', update(head(0, 0, 1, 1, 7))],
    ['a text of four gigabytes', Buffer.from([3, 0, 0, 0, 255, 255, 255, 255])],
    ['a rectangle beside the screen', update(head(1, 0, 64, 48, 0))],
    ['one of four billion pixels', update(head(0, 0, 65_535, 65_535, 5))],
    ['a screen of as many', update(head(0, 0, 65_535, 65_535, -223))],
    [
      'the screen a third time',
      update(...Array.from({ length: 3 }, () => [...head(0, 0, 64, 48, 1), 0, 0, 0, 0])),
    ],
    ['bells without end', Buffer.alloc(1_001, 2)],
  ])('refuses %s', (_, bytes) => {
    expect(() => createUpdateReader(screen).push(bytes)).toThrow(
      /unexpected|unknown|too much|outside|larger than/,
    );
  });

  it('takes small messages without moving the others each time', () => {
    const reader = createUpdateReader(screen);
    const before = process.cpuUsage();
    // 1 MB of empty updates: to move the rest after each takes 130 GB of copying.
    expect(reader.push(Buffer.alloc(1024 ** 2))).toHaveLength(256 * 1024);
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000);
  });

  it('holds no more than the pixels of its screen and their heads', () => {
    const reader = createUpdateReader({ width: 1920, height: 1080 });
    // Both rectangles together have more than the bytes of the screen.
    const whole = head(0, 0, 1920, 1080, 0);
    reader.push(update([...whole, ...Array.from({ length: 1920 * 1080 * 4 }, () => 1)], whole));
    const piece = Buffer.alloc(256 * 1024);
    let pushed = 0;
    expect(() => {
      for (; pushed < 30; pushed += 1) reader.push(piece);
    }).toThrow('too much');
    expect(pushed).toBeLessThan(10);
  });
});

describe('a segment', () => {
  const startedAt = 1_795_253_400_210;
  const message = update(tiles);
  const bytes = Buffer.concat([
    segmentHead({ width: 20, height: 16, full: true, startedAt }),
    messageHead(70, message.length),
    message,
  ]);

  it('has what was written', () => {
    expect(readSegment(bytes)).toEqual({
      ...{ width: 20, height: 16, full: true, startedAt },
      messages: [{ at: startedAt + 70, bytes: message }],
    });
  });

  it('is refused where it is cut off or no segment', () => {
    expect(() => readSegment(bytes.subarray(0, -1))).toThrow('cut off');
    expect(() => readSegment(bytes.subarray(0, 30))).toThrow('cut off');
    expect(() => readSegment(Buffer.from('BSSREC9'))).toThrow('not a segment');
    expect(() => readSegment(Buffer.alloc(24))).toThrow('not a segment');
  });
});
