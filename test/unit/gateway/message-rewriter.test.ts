import { deflateRawSync, constants } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { keepDownloads, MARK } from '#src/roles/gateway/cdp/keep-downloads.ts';
import { createMessageRewriter, READ_BYTES_MAX } from '#src/roles/gateway/cdp/message-rewriter.ts';
import { frameHead, unmask } from '#src/roles/gateway/cdp/websocket-frames.ts';

/** As Playwright 1.65 sends it after `connectOverCDP` and for a new context. */
const playwright =
  '{"id":2,"method":"Browser.setDownloadBehavior","params":{"behavior":"allowAndName",' +
  '"browserContextId":"7E1A","downloadPath":"/tmp/playwright-artifacts-ZzA1xY",' +
  '"eventsEnabled":true}}';
const playwrightKept = playwright.replace('/tmp/playwright-artifacts-ZzA1xY', 'downloads');

const MASK = Buffer.from([0x12, 0xfe, 0x00, 0x9a]);

type Shape = { opcode?: number; isFinal?: boolean; isCompressed?: boolean };

/** A frame as a client sends it. */
function frame(
  body: string | Buffer,
  { opcode = 1, isFinal = true, isCompressed = false }: Shape = {},
): Buffer {
  const payload = Buffer.from(body);
  const head = [opcode | (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0)];
  if (payload.length < 126) head.push(0x80 | payload.length);
  else if (payload.length < 65_536) head.push(0xfe, payload.length >> 8, payload.length & 0xff);
  else head.push(0xff, 0, 0, 0, 0, 0, payload.length >> 16, (payload.length >> 8) & 0xff);
  if (payload.length >= 65_536) head.push(payload.length & 0xff);
  return Buffer.concat([Buffer.from(head), MASK, unmask(payload, MASK)]);
}

function compressed(text: string): Buffer {
  return deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
}

/** What passes of the bytes, in chunks of so many bytes. */
function pass(bytes: Buffer, chunkLength = bytes.length): Buffer {
  const rewriter = createMessageRewriter(MARK, keepDownloads);
  const passed: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += chunkLength)
    passed.push(...rewriter.take(bytes.subarray(at, at + chunkLength)));
  return Buffer.concat(passed);
}

/** The texts of frames that are one message each. */
function texts(bytes: Buffer): string[] {
  const all: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const head = frameHead(bytes, at);
    if (head === null || head === 'unknown') throw new Error('no frame');
    const begin = at + head.headLength;
    at = begin + head.length;
    all.push(unmask(bytes.subarray(begin, at), head.mask).toString());
  }
  return all;
}

const other = (id: number) => `{"id":${id},"method":"Page.enable"}`;

describe('a command that says where downloads go', () => {
  test('is replaced in its place, in chunks of any length', () => {
    const sent = Buffer.concat([frame(other(1)), frame(playwright), frame(other(3))]);
    for (const chunkLength of [1, 2, 3, 7, 50, 64, 200, sent.length])
      expect(texts(pass(sent, chunkLength))).toEqual([other(1), playwrightKept, other(3)]);
  });

  test('is replaced where it comes in fragments, with control frames between them', () => {
    const ping = frame('are you there', { opcode: 9 });
    const sent = Buffer.concat([
      frame(playwright.slice(0, 40), { isFinal: false }),
      ping,
      frame(playwright.slice(40, 41), { opcode: 0, isFinal: false }),
      frame(playwright.slice(41), { opcode: 0 }),
      frame(other(3)),
    ]);
    for (const chunkLength of [1, 5, 97, sent.length])
      expect(texts(pass(sent, chunkLength))).toEqual(['are you there', playwrightKept, other(3)]);
  });

  test('is replaced where it is compressed', () => {
    const sent = frame(compressed(playwright), { isCompressed: true });
    for (const chunkLength of [1, sent.length])
      expect(texts(pass(sent, chunkLength))).toEqual([playwrightKept]);
  });
});

describe('all else passes as it came', () => {
  const long = `{"id":4,"method":"x","params":{"x":"${'DownloadBehavior'.repeat(9_000)}"}}`;
  const cases: Record<string, Buffer> = {
    'other commands': Buffer.concat([frame(other(1)), frame(''), frame(other(2))]),
    'a text that only mentions it': frame(
      '{"id":1,"method":"x","params":{"a":"DownloadBehavior"}}',
    ),
    'what is no JSON': frame('DownloadBehavior'),
    'JSON that is no command': Buffer.concat(
      ['null', '"DownloadBehavior"', '{"method":"Browser.setDownloadBehavior","params":null}'].map(
        (text) => frame(text),
      ),
    ),
    'a message of binary': frame(playwright, { opcode: 2 }),
    'a long message, and what follows': Buffer.concat([frame(long), frame(other(5))]),
    'a long message in fragments': Buffer.concat([
      frame(long.slice(0, 1_000), { isFinal: false }),
      frame(long.slice(1_000, 9_000), { opcode: 0, isFinal: false }),
      frame(long.slice(9_000), { opcode: 0, isFinal: false }),
      frame(playwright, { opcode: 0 }),
      frame(other(5)),
    ]),
    'what is compressed wrongly': frame('DownloadBehavior', { isCompressed: true }),
    'what becomes long uncompressed': frame(compressed('DownloadBehavior'.repeat(9_000)), {
      isCompressed: true,
    }),
    'a frame without a mask': Buffer.concat([
      frame(other(1), { isFinal: false }),
      Buffer.from([0x81, 0x02, 0x68, 0x69]),
      frame(playwright),
    ]),
  };

  test.for(Object.keys(cases))('%s', (name) => {
    const sent = cases[name] ?? Buffer.alloc(0);
    for (const chunkLength of [1_003, 4_096, sent.length])
      expect(pass(sent, chunkLength).equals(sent)).toBe(true);
  });
});

test('a message that is kept until it is complete is bounded', () => {
  const rewriter = createMessageRewriter(MARK, keepDownloads);
  const sent = frame('x'.repeat(1_000), { isFinal: false });
  const next = frame('x'.repeat(1_000), { opcode: 0, isFinal: false });
  let bytes = sent.length;
  let passed = 0;
  const count = (some: readonly Buffer[]) => some.reduce((sum, { length }) => sum + length, 0);
  passed += count(rewriter.take(sent));
  for (let n = 0; n < 50; n += 1) {
    passed += count(rewriter.take(next));
    bytes += next.length;
    expect(bytes - passed).toBeLessThanOrEqual(READ_BYTES_MAX);
  }
  expect(passed).toBe(bytes);
});

test('a message without the mark is not copied', () => {
  const sent = frame(other(1));
  const [passed] = createMessageRewriter(MARK, keepDownloads).take(sent);
  expect(passed?.buffer).toBe(sent.buffer);
});

test.each([9, 10, 8, 11])(
  'a control frame (%i) that is longer than one may be is not held: the browser refuses it',
  (opcode) => {
    const rewriter = createMessageRewriter(MARK, keepDownloads);
    const head = Buffer.from([0x80 | opcode, 0xff, 0, 0, 0, 2, 0, 0, 0, 0, ...MASK]);
    const piece = Buffer.alloc(64 * 1024);
    const sent = [head, ...Array.from({ length: 16 }, () => piece)];
    const passed = sent.flatMap((bytes) => [...rewriter.take(bytes)]);
    expect(Buffer.concat(passed).length).toBe(Buffer.concat(sent).length);
  },
);

test('one that is in pieces passes at once, too', () => {
  const fragment = frame('abc', { opcode: 9, isFinal: false });
  expect(pass(fragment).equals(fragment)).toBe(true);
});
