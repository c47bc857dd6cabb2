import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { EventShortener } from '#src/features/pages/short-events.ts';
import { createRandom } from '#test/support/random.ts';

const KEPT = { beginBytes: 200, endBytes: 20 };
const HANDSHAKE = Buffer.from('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n');

/** A frame of a server, as Chromium sends it. */
function frame(payload: Buffer, first = 0x81): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 2 ** 16 ? 4 : 10);
  head.writeUInt8(first);
  head.writeUInt8(length < 126 ? length : length < 2 ** 16 ? 126 : 127, 1);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}
const event = (length: number) =>
  Buffer.from(`{"method":"A.b","x":"${'x'.repeat(length)}"}the end`);
const result = Buffer.from(`{"id":7,"result":"${'y'.repeat(70_000)}"}`);
/** With the length in eight bytes, as it is not known how much is kept of a longer one. */
function shortened(long: Buffer): Buffer {
  const payload = Buffer.concat([long.subarray(0, KEPT.beginBytes), long.subarray(-KEPT.endBytes)]);
  const head = Buffer.from([0x81, 127, 0, 0, 0, 0, 0, 0, 0, payload.length]);
  return Buffer.concat([head, payload]);
}

async function through(bytes: Buffer, pieceMax: number): Promise<Buffer> {
  const random = createRandom(pieceMax, 'pieces');
  const shortener = new EventShortener(KEPT);
  const passed = buffer(shortener);
  for (let at = 0; at < bytes.length;) {
    const length = random.integer(1, pieceMax);
    shortener.write(bytes.subarray(at, at + length));
    at += length;
  }
  shortener.end();
  return passed;
}

test.each([1, 3, 17, 1_000, 65_536])(
  'long events are shortened, all else passes, in pieces of up to %i bytes',
  async (pieceMax) => {
    const ping = frame(Buffer.from('ping'), 0x89);
    const passes = [
      frame(event(10)),
      frame(result),
      ping,
      frame(event(150)),
      frame(Buffer.alloc(0)),
    ];
    const longest = [event(201), event(5_000), event(100_000)];
    const sent = Buffer.concat([
      HANDSHAKE,
      ...passes,
      ...longest.map((one) => frame(one)),
      ...passes,
    ]);
    const expected = [HANDSHAKE, ...passes, ...longest.map(shortened), ...passes];
    expect((await through(sent, pieceMax)).equals(Buffer.concat(expected))).toBe(true);
  },
);

test.each([
  ['bytes', frame(Buffer.alloc(5_000), 0x82)],
  ['a part of a message', frame(event(5_000), 0x01)],
  ['an answer without an end to its head', Buffer.alloc(70_000, 'x')],
])('%s pass as they are: the connection takes or refuses them', async (_, bytes) => {
  const sent = bytes.length === 70_000 ? bytes : Buffer.concat([HANDSHAKE, bytes]);
  expect((await through(sent, 1_000)).equals(sent)).toBe(true);
});
