import { deflateSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { createRfbFilter } from '#src/roles/gateway/vnc/rfb-filter.ts';

/** The longest message that the gateway takes of a viewer. */
const CHUNK_BYTES = 2 * 1024 ** 2;
/** All connections share one thread. Measured: 2 at most; 15 where all of a start is inflated. */
const TIMES_MAX = 4;

const start = Buffer.from('RFB 003.008\n\x01\x01');
const pointer = Buffer.from([5, 0, 0, 1, 0, 2]);
let plainMs = Infinity;
beforeAll(() => {
  plainMs = processorMsOf(pointer);
});

test.each([
  ['half a megabyte in 512 bytes', provided(zeros().subarray(0, 512))],
  ['the begin of that, which has codes of its own', provided(zeros().subarray(0, 16))],
  ['a text of one byte', provided(deflateSync(Buffer.from([0, 0, 0, 1, 0])))],
  ['no byte', provided(Buffer.alloc(0))],
])('texts cost the gateway little more than moves of the pointer: %s', (_, message) => {
  expect(processorMsOf(message)).toBeLessThan(TIMES_MAX * plainMs);
});

function zeros(): Buffer {
  return deflateSync(Buffer.alloc(530_000));
}

/** An extended ClientCutText that provides a text. */
function provided(compressed: Buffer): Buffer {
  const head = Buffer.from([6, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 1]);
  head.writeInt32BE(-(4 + compressed.length), 4);
  return Buffer.concat([head, compressed]);
}

/** The least of five rounds, each of one chunk full of such messages. */
function processorMsOf(message: Buffer): number {
  const count = Math.floor(CHUNK_BYTES / message.length);
  const chunk = Buffer.concat(Array<Buffer>(count).fill(message));
  let least = Infinity;
  for (let round = 0; round < 5; round += 1) {
    const filter = createRfbFilter(() => true);
    filter.take(start);
    const before = process.cpuUsage();
    expect(filter.take(chunk)).not.toBeNull();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}
