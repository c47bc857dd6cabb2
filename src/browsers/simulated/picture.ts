import { createHash } from 'node:crypto';

/**
 * A picture of a simulated page: a bar, a background, a pattern in the colours of its browser, and,
 * where there is room, the word SIMULATED. It is a baseline JPEG of squares of one colour, so each
 * square is three numbers and no transform is needed.
 */
export function simulatedPicture(
  name: string,
  { width, height }: { width: number; height: number },
): Buffer {
  const hash = createHash('sha256').update(name).digest();
  const columns = Math.ceil(width / SQUARE);
  const rows = Math.ceil(height / SQUARE);
  const hue = ((hash[0] ?? 0) / 256) * 2 * Math.PI;
  const colours = {
    bar: toYcc(60, hue, 40),
    page: toYcc(225, hue, 12),
    pattern: toYcc(140, hue, 70),
  };
  const out = createBits();
  let before: Colour = [0, 0, 0];
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const part = isLetter(column, row, columns, rows)
        ? 'bar'
        : partAt(hash, column / columns, row / rows);
      const colour = colours[part];
      colour.forEach((value, at) => out.square(value - (before[at] ?? 0)));
      before = colour;
    }
  }
  return Buffer.concat([headOf(width, height), out.end(), Buffer.from([0xff, 0xd9])]);
}

/** Pixels of a side of a square: a block of JPEG. */
const SQUARE = 8;
/** Squares of the pattern, which is symmetric, in each direction. */
const PATTERN = 5;
/** Luminance and two chrominances, each −128 to 127. */
type Colour = [number, number, number];

function toYcc(luminance: number, hue: number, strength: number): Colour {
  const [blue, red] = [Math.cos(hue), Math.sin(hue)].map((part) => Math.round(strength * part));
  return [luminance - 128, blue ?? 0, red ?? 0];
}

/** @param x, y 0 to 1, from the top left corner */
function partAt(hash: Buffer, x: number, y: number): 'bar' | 'page' | 'pattern' {
  if (y < 0.1) return 'bar';
  const [column, row] = [(x - 0.3) / 0.4, (y - 0.2) / 0.5].map((at) => Math.floor(at * PATTERN));
  if (column === undefined || row === undefined) return 'page';
  if (column < 0 || column >= PATTERN || row < 0 || row >= PATTERN) return 'page';
  const mirrored = Math.min(column, PATTERN - 1 - column);
  return ((hash[1 + mirrored] ?? 0) >> row) & 1 ? 'pattern' : 'page';
}

/** The letters of SIMULATED, each three squares wide, and the five rows of each from the top. */
const WORD = [
  [0b111, 0b100, 0b111, 0b001, 0b111],
  [0b111, 0b010, 0b010, 0b010, 0b111],
  [0b101, 0b111, 0b111, 0b101, 0b101],
  [0b101, 0b101, 0b101, 0b101, 0b111],
  [0b100, 0b100, 0b100, 0b100, 0b111],
  [0b010, 0b101, 0b111, 0b101, 0b101],
  [0b111, 0b010, 0b010, 0b010, 0b010],
  [0b111, 0b100, 0b110, 0b100, 0b111],
  [0b110, 0b101, 0b101, 0b101, 0b110],
];
/** With the gap after each letter. */
const LETTER_WIDTH = 4;
const LETTER_HEIGHT = 5;

/** Whether a square belongs to the word, which stands at the bottom in the middle. */
function isLetter(column: number, row: number, columns: number, rows: number): boolean {
  const left = Math.floor((columns - WORD.length * LETTER_WIDTH) / 2);
  const top = rows - LETTER_HEIGHT - 1;
  if (left < 0 || top < 0 || column < left || row < top) return false;
  const letter = WORD[Math.floor((column - left) / LETTER_WIDTH)];
  const bit = LETTER_WIDTH - 2 - ((column - left) % LETTER_WIDTH);
  return bit >= 0 && (((letter?.[row - top] ?? 0) >> bit) & 1) === 1;
}

/** The segments before the data; quantization by 8 makes a square's coefficient its own value. */
function headOf(width: number, height: number): Buffer {
  const size = [height >> 8, height & 0xff, width >> 8, width & 0xff];
  return Buffer.from([
    0xff,
    0xd8,
    ...segment(0xdb, [0, ...Array.from({ length: 64 }, () => SQUARE)]),
    ...segment(0xc0, [8, ...size, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]),
    // Lengths of differences, 0 to 11, in 4 bits each.
    ...segment(0xc4, [0x00, ...codes(4, 12), ...Array.from({ length: 12 }, (_, at) => at)]),
    // The end of a square, in 1 bit.
    ...segment(0xc4, [0x10, ...codes(1, 1), 0]),
    ...segment(0xda, [3, 1, 0, 2, 0, 3, 0, 0, 63, 0]),
  ]);
}

function segment(marker: number, bytes: readonly number[]): number[] {
  const length = bytes.length + 2;
  return [0xff, marker, length >> 8, length & 0xff, ...bytes];
}

/** How many codes there are of each length, 1 to 16. */
function codes(bits: number, count: number): number[] {
  return Array.from({ length: 16 }, (_, at) => (at === bits - 1 ? count : 0));
}

/** The data: bits, in which a byte of ones is followed by a zero byte. */
function createBits() {
  const bytes: number[] = [];
  let held = 0;
  let count = 0;
  function write(value: number, bits: number): void {
    for (let at = bits - 1; at >= 0; at -= 1) {
      held = (held << 1) | ((value >> at) & 1);
      count += 1;
      if (count < 8) continue;
      bytes.push(held);
      if (held === 0xff) bytes.push(0);
      held = 0;
      count = 0;
    }
  }
  return {
    /** A square, by its difference from the one before. */
    square(difference: number): void {
      const length = difference === 0 ? 0 : 32 - Math.clz32(Math.abs(difference));
      write(length, 4);
      write(difference < 0 ? difference + (1 << length) - 1 : difference, length);
      write(0, 1);
    },
    end(): Buffer {
      while (count > 0) write(1, 1);
      return Buffer.from(bytes);
    },
  };
}
