import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openDisplay, vncPasswordFile } from '#src/browsers/rfb.ts';

/** Resizing a screen against scripted servers, with messages that real servers do not send. */

const LAYOUT = -308;
const SCREEN_ID = 77;
const size = { width: 800, height: 600 };

/** A server that sends each answer of its script after so many bytes of the viewer. */
async function scripted(script: readonly (readonly [bytes: number, answer: Buffer])[]) {
  const received: Buffer[] = [];
  const server = createServer((socket) => {
    const left = [...script];
    let buffered = Buffer.alloc(0);
    const go = (): void => {
      for (let next = left[0]; next !== undefined && buffered.length >= next[0]; next = left[0]) {
        received.push(buffered.subarray(0, next[0]));
        buffered = buffered.subarray(next[0]);
        socket.write(next[1]);
        left.shift();
        if (left.length === 0) socket.end();
      }
    };
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      buffered = Buffer.concat([buffered, chunk]);
      go();
    });
    go();
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { received, endpoint: { host: '127.0.0.1', port } };
}

const init = Buffer.alloc(24);
init.writeUInt8(32, 4);
init.writeUInt32BE(4, 20);
const hello: [number, Buffer][] = [
  [0, Buffer.from('RFB 003.008\n')],
  [12, Buffer.from([2, 1, 2])],
  [1, Buffer.alloc(16, 5)],
  [16, Buffer.alloc(4)],
  [1, Buffer.concat([init, Buffer.from('name')])],
];
/** Bytes of SetEncodings with an update request, and of SetDesktopSize with another one. */
const [REQUEST, RESIZE] = [8 + 10, 24 + 10];

function rectangle(place: number[], encoding: number, body: Buffer): Buffer {
  const head = Buffer.alloc(12);
  for (const [at, value] of place.entries()) head.writeUInt16BE(value, 2 * at);
  head.writeInt32BE(encoding, 8);
  return Buffer.concat([head, body]);
}
function layout(reason: number, status: number): Buffer {
  const body = Buffer.alloc(20);
  body.writeUInt8(1, 0);
  body.writeUInt32BE(SCREEN_ID, 4);
  return rectangle([reason, status, 800, 600], LAYOUT, body);
}
const pixel = rectangle([0, 0, 1, 1], 0, Buffer.alloc(4));
const bell = Buffer.from([2]);
const cutText = Buffer.from([3, 0, 0, 0, 0, 0, 0, 2, 104, 105]);
function update(...rectangles: Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([0, 0, 0, rectangles.length]), ...rectangles]);
}

async function resizeOn(script: [number, Buffer][]) {
  const { received, endpoint } = await scripted([...hello, ...script]);
  using display = await openDisplay(endpoint, 'pass0rd1', AbortSignal.timeout(20_000));
  await display.resize(size);
  return received;
}

test('the existing screen gets the size, whatever other messages arrive meanwhile', async () => {
  const others = update(pixel, layout(0, 0));
  const received = await resizeOn([
    [REQUEST, Buffer.concat([bell, cutText, update(pixel), others])],
    [RESIZE, Buffer.concat([others, bell, update(layout(1, 0), pixel)])],
  ]);
  const message = received.at(-1);
  expect([message?.[0], message?.readUInt16BE(2), message?.readUInt16BE(4)]).toEqual([
    251, 800, 600,
  ]);
  expect(message?.readUInt32BE(8)).toBe(SCREEN_ID);
});

test.each<[string, string, [number, Buffer][]]>([
  [
    'refuses the size',
    'cannot be resized: 3',
    [
      [REQUEST, update(layout(0, 0))],
      [RESIZE, update(layout(1, 3))],
    ],
  ],
  ['ends in the middle of a message', 'closed', [[REQUEST, update(layout(0, 0)).subarray(0, 20)]]],
  ['sends an unknown message', 'unexpected RFB message 9', [[REQUEST, Buffer.from([9])]]],
])('a server that %s makes the resize fail', async (_, words, script) => {
  await expect(resizeOn(script)).rejects.toThrow(words);
});

test('a silent server is waited for until the signal aborts', async () => {
  const { endpoint } = await scripted([
    [0, Buffer.from('RFB 003.008\n')],
    [1_000, Buffer.alloc(0)],
  ]);
  await expect(openDisplay(endpoint, 'pass0rd1', AbortSignal.timeout(50))).rejects.toThrow();
});

test('the file of a password has the bytes that vncpasswd writes', () => {
  // Of `printf 'aB3dE6gH\n' | tigervncpasswd -f`.
  expect(vncPasswordFile('aB3dE6gH').toString('hex')).toBe('73c2a5fa07e1b485');
  expect(vncPasswordFile('abcdef').toString('hex')).toBe('412ea2b7a75db6aa');
});
