import { constants, deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createRfbFilter } from '#src/roles/gateway/vnc/rfb-filter.ts';

const hello = Buffer.from('RFB 003.008\n');
const vncAuth = Buffer.concat([Buffer.from([2]), Buffer.alloc(16, 9)]);
const shared = Buffer.from([1]);
const start = Buffer.concat([hello, vncAuth, shared]);

const setPixelFormat = Buffer.concat([Buffer.from([0]), Buffer.alloc(19, 4)]);
const updateRequest = Buffer.from([3, 1, 4, 5, 6, 4, 4, 5, 5, 5]);
const continuous = Buffer.from([150, 1, 4, 4, 4, 4, 4, 4, 4, 4]);
const fence = Buffer.from([248, 0, 0, 0, 0, 0, 0, 1, 3, 4, 5, 6]);
const resize = Buffer.concat([Buffer.from([251, 0, 2, 0, 2, 0, 2, 0]), Buffer.alloc(32, 4)]);
const xvp = Buffer.from([250, 0, 1, 3]);
const qemuKey = (isDown: number) => Buffer.from([255, 0, 0, isDown, 0, 0, 0, 97, 0, 0, 0, 30]);

function encodings(...list: number[]): Buffer {
  const message = Buffer.alloc(4 + 4 * list.length);
  message.writeUInt8(2);
  message.writeUInt16BE(list.length, 2);
  for (const [index, one] of list.entries()) message.writeInt32BE(one, 4 + 4 * index);
  return message;
}
function key(isDown: number, symbol = 65): Buffer {
  return Buffer.from([4, isDown, 0, 0, 0, 0, 0, symbol]);
}
function pointer(mask: number, x = 1, y = 2): Buffer {
  return Buffer.from([5, mask, 0, x, 0, y]);
}
function clipboard(length: number, bytes = Math.abs(length)): Buffer {
  const message = Buffer.alloc(8 + bytes, 5);
  message.writeUInt8(6);
  message.writeInt32BE(length, 4);
  return message;
}

const MIB = 1024 ** 2;
const PROVIDE = 0x10_00_00_01;
/** An extended ClientCutText: flags and what is compressed. */
function extended(flags: number, compressed = Buffer.alloc(0)): Buffer {
  const message = Buffer.alloc(12);
  message.writeUInt8(6);
  message.writeInt32BE(-(4 + compressed.length), 4);
  message.writeUInt32BE(flags, 8);
  return Buffer.concat([message, compressed]);
}
/** A text, or only the length that it is said to have. */
function provided(text: string | Buffer, says = Buffer.byteLength(text), options = {}): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(says);
  return extended(PROVIDE, deflateSync(Buffer.concat([length, Buffer.from(text)]), options));
}
const noText = provided('\0');

const watching = [setPixelFormat, encodings(0, 7, -223), updateRequest, continuous, fence];
const steering = [
  key(1),
  key(0),
  pointer(1),
  pointer(0),
  clipboard(3),
  clipboard(-9),
  clipboard(0),
  resize,
  xvp,
  qemuKey(1),
  qemuKey(0),
];

/** What goes to the screen of these bytes, sent in pieces; null: the viewer was closed. */
function pass(bytes: Buffer, piece: number, maySteer = () => false): Buffer | null {
  const filter = createRfbFilter(maySteer);
  const passed: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += piece) {
    const some = filter.take(bytes.subarray(at, at + piece));
    if (some === null) return null;
    passed.push(...some);
  }
  return Buffer.concat(passed);
}

describe.each([1, 2, 3, 7, 64, 10_000])('in pieces of %i bytes', (piece) => {
  test('a viewer that may not steer gets through what only watches', () => {
    const mixed = watching.flatMap((one) => [...steering, one, ...steering]);
    expect(pass(Buffer.concat([start, ...mixed]), piece)).toEqual(
      Buffer.concat([start, ...watching]),
    );
  });

  test('a viewer that may steer gets through all it sends, known or not', () => {
    const all = [start, ...steering, ...watching, Buffer.from([77, 1, 2, 3]), ...steering];
    for (const bytes of [
      Buffer.concat(all),
      Buffer.from('GET / HTTP/1.1'),
      Buffer.from('RFB 003.003\n and so on'),
      Buffer.concat([hello, Buffer.from([19, 0, 2, 1, 3])]),
    ])
      expect(pass(bytes, piece, () => true)).toEqual(bytes);
  });

  test('a viewer that may not steer is closed for what is not known', () => {
    for (const bytes of [
      Buffer.from('GET / HTTP/1.1'),
      Buffer.from('RFB 003.003\n'),
      Buffer.from('RFB 003.889\n'),
      Buffer.concat([hello, Buffer.from([19])]),
      Buffer.concat([start, Buffer.from([77])]),
      Buffer.concat([start, Buffer.from([255, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])]),
      Buffer.concat([start, clipboard(-(2 ** 31), 0)]),
      Buffer.concat([start, encodings(0, -316), pointer(0x81)]),
    ])
      expect(pass(bytes, piece)).toBeNull();
  });
});

describe('a text of more than 1 MiB', () => {
  const most = 'x'.repeat(MIB - 1) + '\0';
  const stored = { level: constants.Z_NO_COMPRESSION };

  test.each([
    ['as it is', clipboard(MIB + 1)],
    ['of 4 GB', clipboard(2 ** 31 - 1, 0)],
    ['compressed', provided(`x${most}`)],
    ['that is not there', provided('', MIB + 1)],
    ['not compressed', provided(`x${most}`, MIB + 1, stored)],
    ['in so large a message', extended(PROVIDE, Buffer.alloc(MIB + 8_192))],
    ['behind blocks without anything', emptyBlocks(600)],
  ])('closes the viewer that sends it: %s', (_, message) => {
    for (const piece of [1_000, 5 * MIB]) {
      const filter = createRfbFilter(() => true);
      const bytes = Buffer.concat([start, message, key(1)]);
      let isClosed = false;
      for (let at = 0; at < bytes.length && !isClosed; at += piece)
        isClosed = filter.take(bytes.subarray(at, at + piece)) === null;
      expect([isClosed, filter.refusal()]).toEqual([true, 'text_too_long']);
    }
  });

  test.each([
    ['as it is', clipboard(MIB)],
    ['compressed', provided(most)],
    ['not compressed', provided(most, MIB, stored)],
    ['other than a text, however it is compressed', extended(0x08_00_00_01)],
    ['no zlib', extended(PROVIDE, Buffer.alloc(7, 9))],
  ])('is the first that is too long: one less passes, %s', (_, message) => {
    for (const piece of [1_000, 5 * MIB]) {
      const all = Buffer.concat([start, message, key(1)]);
      expect(pass(all, piece, () => true)?.equals(all)).toBe(true);
    }
  });

  test('is dropped where the viewer only watches', () => {
    const bytes = Buffer.concat([start, clipboard(MIB + 1), updateRequest]);
    expect(pass(bytes, 5 * MIB)).toEqual(Buffer.concat([start, updateRequest]));
  });

  /** Empty blocks of deflate, which hide the length that comes next. */
  function emptyBlocks(count: number): Buffer {
    const blocks = Buffer.from([0, 0, 0, 0xff, 0xff]);
    const hidden = deflateSync(Buffer.from([0, 0x7f, 0, 0])).subarray(2);
    const zlib = [Buffer.from([0x78, 0x9c]), ...Array<Buffer>(count).fill(blocks), hidden];
    return extended(PROVIDE, Buffer.concat(zlib));
  }
});

test('a text that a viewer has announced is answered with none once it may not steer', () => {
  const bytes = Buffer.concat([start, provided('x'.repeat(50_000)), updateRequest]);
  for (const piece of [1, 10, 100_000])
    expect(pass(bytes, piece)).toEqual(Buffer.concat([start, noText, updateRequest]));
});

test('messages that all pass are one write to the screen, however many they are', () => {
  const filter = createRfbFilter(() => true);
  filter.take(start);
  const moves = Buffer.concat(Array<Buffer>(1_000).fill(pointer(0)));
  expect(filter.take(moves)).toEqual([moves]);
});

test('what looks like a key within another message is no key', () => {
  const inside = encodings(0x04_01_00_00, 0x00_00_00_41);
  const bytes = Buffer.concat([start, inside, fence, key(1)]);
  expect(pass(bytes, 1)).toEqual(Buffer.concat([start, inside, fence]));
});

test('a viewer that only watches does not ask the screen to close the others', () => {
  const alone = Buffer.concat([hello, vncAuth, Buffer.from([0]), updateRequest]);
  expect(pass(alone, 5)).toEqual(Buffer.concat([start, updateRequest]));
  expect(pass(alone, 5, () => true)).toEqual(alone);
});

test('a screen without a password is served, and RFB 3.7', () => {
  const bytes = Buffer.concat([Buffer.from('RFB 003.007\n'), Buffer.from([1]), shared]);
  expect(pass(Buffer.concat([bytes, key(1), updateRequest]), 4)).toEqual(
    Buffer.concat([bytes, updateRequest]),
  );
});

describe('a viewer that may not steer any more', () => {
  function begun(...before: Buffer[]) {
    let maySteer = true;
    const filter = createRfbFilter(() => maySteer);
    filter.take(Buffer.concat([start, ...before]));
    return {
      filter,
      take: (bytes: Buffer) => {
        const passed = filter.take(bytes);
        return passed === null ? null : Buffer.concat(passed);
      },
      steer(may: boolean) {
        maySteer = may;
      },
    };
  }
  const none = Buffer.alloc(0);

  test('completes the message that it has begun, and sends no other', () => {
    const text = clipboard(1_000);
    const viewer = begun(text.subarray(0, 20));
    viewer.steer(false);
    expect(viewer.take(Buffer.concat([text.subarray(20), key(1), updateRequest]))).toEqual(
      Buffer.concat([text.subarray(20), updateRequest]),
    );
  });

  test('and one that it has begun to drop stays dropped once it may steer again', () => {
    const viewer = begun();
    viewer.steer(false);
    expect(viewer.take(clipboard(1_000).subarray(0, 5))).toEqual(none);
    viewer.steer(true);
    expect(viewer.take(Buffer.concat([clipboard(1_000).subarray(5), key(1)]))).toEqual(key(1));
  });

  test('releases the keys and the buttons that it has pressed, once, and where they were', () => {
    const viewer = begun(key(1, 65), key(1, 66), key(0, 66), qemuKey(1), pointer(5, 7, 8));
    viewer.steer(false);
    expect(viewer.take(key(1, 67))).toEqual(none);
    expect(viewer.take(key(0, 67))).toEqual(none);
    expect(viewer.take(key(0, 66))).toEqual(none);
    expect(viewer.take(key(0, 65))).toEqual(key(0, 65));
    expect(viewer.take(key(0, 65))).toEqual(none);
    expect(viewer.take(qemuKey(0))).toEqual(qemuKey(0));
    expect(viewer.take(pointer(1, 9, 9))).toEqual(none);
    expect(viewer.take(pointer(0, 9, 9))).toEqual(pointer(0, 7, 8));
    expect(viewer.take(pointer(0, 9, 9))).toEqual(none);
  });

  test('is closed if it is not known where its messages begin', () => {
    const odd = begun(Buffer.from([77]));
    expect(odd.filter.refusal()).toBeNull();
    odd.steer(false);
    expect(odd.filter.refusal()).toBe('not_understood');
    expect(odd.take(updateRequest)).toBeNull();
    const buttons = begun(encodings(0, -316), pointer(0x81));
    expect(buttons.filter.refusal()).toBeNull();
    buttons.steer(false);
    expect(buttons.filter.refusal()).toBe('not_understood');
  });
});
