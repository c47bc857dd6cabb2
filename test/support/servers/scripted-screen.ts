import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/** An RFB server with a screen that a test paints; it sends raw pixels. */
export type ScriptedScreen = {
  readonly address: { host: string; port: number };
  /** Viewers that are connected. */
  readonly viewers: number;
  /** Updates sent so far. */
  answered(): number;
  /** Red, green, blue and 255 of each pixel, as a decoder has it. */
  picture(): Uint8ClampedArray;
  /** Fills an area; viewers that have asked for changes get it. */
  paint(area: { x: number; y: number; width: number; height: number }, colour: number[]): void;
  /** Gives the screen another size; it is black then. */
  resize(width: number, height: number): void;
  /** Ends the viewers' connections. */
  hangUp(): void;
} & AsyncDisposable;

type Viewer = { socket: Socket; dirty: Area | null; asked: boolean; isResized: boolean };
type Area = { x: number; y: number; width: number; height: number };

const INIT_BYTES = 24;
/** Lengths of what a viewer sends, by its type; the list of encodings has a count. */
const LENGTHS: Record<number, number> = { 0: 20, 3: 10, 4: 8, 5: 6 };

export async function startScriptedScreen(width = 64, height = 48): Promise<ScriptedScreen> {
  const size = { width, height };
  let pixels = new Uint8ClampedArray(width * height * 4);
  const viewers = new Set<Viewer>();
  let answered = 0;

  function rectangle({ x, y, width: wide, height: high }: Area): Buffer {
    const head = Buffer.alloc(12);
    for (const [index, value] of [x, y, wide, high].entries()) head.writeUInt16BE(value, 2 * index);
    const body = Buffer.alloc(wide * high * 4);
    for (let row = 0; row < high; row += 1)
      for (let column = 0; column < wide; column += 1)
        for (let channel = 0; channel < 3; channel += 1)
          body[(row * wide + column) * 4 + channel] =
            pixels[((y + row) * size.width + x + column) * 4 + channel] ?? 0;
    return Buffer.concat([head, body]);
  }
  function answer(viewer: Viewer): void {
    if (!viewer.asked || (viewer.dirty === null && !viewer.isResized)) return;
    const resized = Buffer.alloc(12);
    resized.writeUInt16BE(size.width, 4);
    resized.writeUInt16BE(size.height, 6);
    resized.writeInt32BE(-223, 8);
    const rectangles = viewer.isResized ? [resized] : [rectangle(viewer.dirty ?? whole())];
    answered += 1;
    viewer.socket.write(Buffer.concat([Buffer.from([0, 0, 0, rectangles.length]), ...rectangles]));
    if (!viewer.isResized) viewer.dirty = null;
    viewer.isResized = false;
    viewer.asked = false;
  }
  const whole = (): Area => ({ x: 0, y: 0, ...size });

  function listen(viewer: Viewer): void {
    const { socket } = viewer;
    let held = Buffer.alloc(0);
    let step = 0;
    const handshake = [
      [12, () => Buffer.from([1, 2])],
      [1, () => Buffer.alloc(16, 5)],
      [16, () => Buffer.alloc(4)],
      [1, init],
    ] as const;
    socket.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      for (;;) {
        const shake = handshake[step];
        const length = shake?.[0] ?? lengthOf(held);
        if (length === 0 || held.length < length) return;
        const message = held.subarray(0, length);
        held = held.subarray(length);
        step += 1;
        if (shake !== undefined) socket.write(shake[1]());
        else if (message[0] === 3) {
          if (message[1] === 0) viewer.dirty = whole();
          viewer.asked = true;
          answer(viewer);
        }
      }
    });
    socket.write('RFB 003.008\n');
  }
  function init(): Buffer {
    const bytes = Buffer.alloc(INIT_BYTES);
    bytes.writeUInt16BE(size.width, 0);
    bytes.writeUInt16BE(size.height, 2);
    bytes.writeUInt8(32, 4);
    return bytes;
  }

  const server = createServer((socket) => {
    const viewer: Viewer = { socket, dirty: null, asked: false, isResized: false };
    viewers.add(viewer);
    socket.on('error', () => {});
    socket.on('close', () => viewers.delete(viewer));
    listen(viewer);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    address: { host: '127.0.0.1', port },
    get viewers() {
      return viewers.size;
    },
    answered: () => answered,
    picture: () => pixels.map((value, index) => (index % 4 === 3 ? 255 : value)),
    paint(area, colour) {
      for (let y = area.y; y < area.y + area.height; y += 1)
        for (let x = area.x; x < area.x + area.width; x += 1)
          pixels.set(colour, (y * size.width + x) * 4);
      for (const viewer of viewers) {
        viewer.dirty = viewer.dirty === null ? area : whole();
        answer(viewer);
      }
    },
    resize(newWidth, newHeight) {
      Object.assign(size, { width: newWidth, height: newHeight });
      pixels = new Uint8ClampedArray(newWidth * newHeight * 4);
      for (const viewer of viewers) {
        viewer.isResized = true;
        viewer.dirty = whole();
        answer(viewer);
      }
    },
    hangUp() {
      for (const { socket } of viewers) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      for (const { socket } of viewers) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** 0: not known yet. */
function lengthOf(held: Buffer): number {
  const type = held[0] ?? -1;
  if (type === 2) return held.length < 4 ? 0 : 4 + 4 * held.readUInt16BE(2);
  return LENGTHS[type] ?? 0;
}
