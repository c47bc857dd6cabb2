import { constants, deflateSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { inflateUInt32BE } from '#src/roles/gateway/vnc/inflate-start.ts';
import { createRandom } from '#test/support/random.ts';

const STRATEGIES = [
  constants.Z_DEFAULT_STRATEGY,
  constants.Z_FILTERED,
  constants.Z_HUFFMAN_ONLY,
  constants.Z_RLE,
  constants.Z_FIXED,
];

test('the first four bytes are those that were compressed, whatever the strategy and the level', () => {
  const random = createRandom(1, 'inflate-start');
  for (let round = 0; round < 3_000; round += 1) {
    // Few different bytes make repetitions, many make codes of the block's own.
    const bytesMax = random.pick([0, 1, 3, 20, 255]);
    const length = random.integer(4, random.pick([8, 60, 600]));
    const bytes = Buffer.from(Array.from({ length }, () => random.integer(0, bytesMax)));
    const options = {
      level: random.integer(0, 9),
      memLevel: random.integer(1, 9),
      strategy: random.pick(STRATEGIES),
    };
    const found = inflateUInt32BE(deflateSync(bytes, options));
    expect({ round, options, found }).toEqual({ round, options, found: bytes.readUInt32BE() });
  }
});

test('the begin is enough', () => {
  const bytes = Buffer.concat([Buffer.from([1, 2, 3, 4]), Buffer.alloc(500_000)]);
  for (const level of [0, 1, 9])
    expect(inflateUInt32BE(deflateSync(bytes, { level }).subarray(0, 100))).toBe(0x01_02_03_04);
});

test.each([
  ['nothing', Buffer.alloc(0)],
  ['one byte of the head', Buffer.from([0x78])],
  ['another method', Buffer.from([0x77, 0x85, 0, 0])],
  ['a head whose check is wrong', Buffer.from([0x78, 0x9d, 0, 0])],
  ['a dictionary', deflateSync(Buffer.from('text'), { dictionary: Buffer.from('te') })],
  ['three bytes', deflateSync(Buffer.from([1, 2, 3]))],
  ['three bytes as they are', deflateSync(Buffer.from([1, 2, 3]), { level: 0 })],
  ['four bytes that are cut off', deflateSync(Buffer.from([9, 8, 7, 6])).subarray(0, 5)],
  ['four bytes as they are, cut off', deflateSync(Buffer.alloc(4), { level: 0 }).subarray(0, 10)],
  ['a block of no type', Buffer.from([0x78, 0x9c, 7, 0, 0, 0, 0, 0])],
  // A fixed code of a repetition where nothing is to repeat.
  ['a repetition of nothing', Buffer.from([0x78, 0x9c, 0x03, 0x02, 0, 0, 0, 0])],
])('of %s it is null', (_, zlib) => {
  expect(inflateUInt32BE(zlib)).toBeNull();
});

test('whatever the bytes are, it comes to an end', () => {
  const random = createRandom(2, 'inflate-start');
  for (let round = 0; round < 3_000; round += 1) {
    // Each type of block, and a last one.
    const head = [0x78, 0x9c, random.integer(0, 7) + 8 * random.integer(0, 31)];
    const found = inflateUInt32BE(Buffer.concat([Buffer.from(head), random.bytes(60)]));
    expect(found === null || (found >= 0 && found <= 0xff_ff_ff_ff)).toBe(true);
  }
});
