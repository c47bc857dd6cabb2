import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openDisplay } from '#src/browsers/rfb.ts';
import { openScreen } from '#src/features/recordings/recorder/screen.ts';
import { eventually } from '#test/support/service/service.ts';

/** Hostile code in a browser's container plays its VNC server, to the recorder and to a resize. */

const MIB = 1024 ** 2;
const signal = () => AbortSignal.timeout(60_000);

type Said = { name?: number; width?: number; height?: number; bits?: number };

function serverInit({ name = 4, width = 640, height = 480, bits = 32 }: Said): Buffer {
  const init = Buffer.alloc(28);
  init.writeUInt16BE(width, 0);
  init.writeUInt16BE(height, 2);
  init.writeUInt8(bits, 4);
  init.writeUInt32BE(name, 20);
  return init;
}

/** Shakes hands; then `serves` has the connection, and gets what the viewer sends. */
async function hostile(said: Said, serves: (socket: Socket, asked: Buffer) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.write('RFB 003.008\n');
    const steps: [number, Buffer][] = [
      [12, Buffer.from([1, 2])],
      [1, Buffer.alloc(16)],
      [16, Buffer.alloc(4)],
      [1, serverInit(said)],
    ];
    let came = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      came = Buffer.concat([came, chunk]);
      for (let step = steps[0]; step !== undefined && came.length >= step[0]; step = steps[0]) {
        came = came.subarray(step[0]);
        socket.write(step[1]);
        steps.shift();
      }
      if (steps.length > 0 || came.length === 0) return;
      serves(socket, came);
      came = Buffer.alloc(0);
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { address: { host: '127.0.0.1', port }, sockets };
}

function rectangle(width: number, height: number, encoding: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt16BE(width, 4);
  bytes.writeUInt16BE(height, 6);
  bytes.writeInt32BE(encoding, 8);
  return bytes;
}
const update = (...rectangles: Buffer[]) =>
  Buffer.concat([Buffer.from([0, 0, 0, rectangles.length]), ...rectangles]);
const NOTHING_NEW = update();
const PIXEL = update(Buffer.concat([rectangle(1, 1, 0), Buffer.alloc(4)]));
const LARGE_TEXT = Buffer.from([3, 0, 0, 0, 255, 255, 255, 255]);

test('a recorder that was asked to take empty updates without end hangs up', async () => {
  const { address, sockets } = await hostile({}, (socket) => {
    const flood = Buffer.concat(Array.from({ length: 16_384 }, () => NOTHING_NEW));
    const pour = (): void => {
      while (!socket.destroyed && socket.write(flood));
    };
    socket.on('drain', pour);
    pour();
  });
  using screen = await openScreen(address, 'password', signal());
  const take = async () => {
    for (;;) await screen.update('changes');
  };
  await expect(take()).rejects.toThrow('not asked for');
  await eventually(async () => sockets.every(({ destroyed }) => destroyed), 'it has hung up');
});

test('what is not asked for is not read: the server waits', async () => {
  const rest = 64 * MIB;
  const { address, sockets } = await hostile({}, (socket, asked) => {
    if (asked.at(-10) === 3 && socket.bytesWritten < MIB)
      socket.write(Buffer.concat([PIXEL, update(Buffer.concat([rectangle(640, 480, 0)]))]));
    if (socket.bytesWritten < MIB) socket.write(Buffer.alloc(rest));
  });
  using screen = await openScreen(address, 'password', signal());
  expect((await screen.update('changes')).pixels).toBe(1);
  const [server] = sockets;
  // More than the system takes for a connection.
  await eventually(async () => (server?.writableLength ?? 0) > 0, 'it waits');
  await new Promise((resolve) => void setImmediate(resolve));
  expect(server?.writableLength).toBeGreaterThan(0);
});

test.each<[string, Said, RegExp]>([
  ['a name of 1 GiB', { name: 1024 * MIB }, /a name of 1073741824 bytes/],
  ['a name of 4 GiB', { name: 0xffff_ffff }, /a name of/],
  ['pixels of 255 bits', { bits: 255 }, /pixels of 255 bits/],
  ['a screen of four billion pixels', { width: 65_535, height: 65_535 }, /larger than it may be/],
])('a server that says %s is left at once', async (_, said, words) => {
  const { address } = await hostile(said, () => undefined);
  const before = process.memoryUsage().rss;
  await expect(openScreen(address, 'password', signal())).rejects.toThrow(words);
  expect(process.memoryUsage().rss - before).toBeLessThan(256 * MIB);
});

test.each<[string, Buffer, RegExp]>([
  ['a text of 4 GiB', LARGE_TEXT, /too much/],
  ['bells without end', Buffer.alloc(MIB, 2), /too much/],
  ['a rectangle of 65,535 squared', update(rectangle(65_535, 65_535, 0)), /outside/],
  ['tiles as large', update(rectangle(65_535, 65_535, 5)), /outside/],
  ['a size as large', update(rectangle(65_535, 65_535, -223)), /larger than it may be/],
])('a recorder hangs up on %s', async (_, bytes, words) => {
  const { address } = await hostile({}, (socket) => socket.write(bytes));
  using screen = await openScreen(address, 'password', signal());
  await expect(screen.update('all')).rejects.toThrow(words);
});

test.each<[string, Buffer, RegExp]>([
  ['a text of 4 GiB', LARGE_TEXT, /a text of 4294967295 bytes/],
  ['bells without end', Buffer.alloc(MIB, 2), /does not tell its layout/],
  ['a rectangle of 65,535 squared', update(rectangle(65_535, 65_535, 0)), /a rectangle of/],
])('a resize is given up at %s', async (_, bytes, words) => {
  const { address } = await hostile({}, (socket) => socket.write(bytes));
  using display = await openDisplay(address, 'password', signal());
  await expect(display.resize({ width: 800, height: 600 })).rejects.toThrow(words);
});
