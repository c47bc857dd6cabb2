import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { expect, test } from 'vitest';
import { arriving, sendPaced } from '#src/roles/api/files/paced-body.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** A reader of a file whose times are known, and an upload that the service keeps waiting. */

useVirtualTime();

const PIECE = Buffer.alloc(64 * 1024, 'x');

/** An answer of so many pieces, of which the client takes one when it is asked to. */
function answerOf(pieces: number, { isClosed = false } = {}) {
  const raw = new EventEmitter();
  let cutAt: number | null = null;
  let silence: { ms: number; end: () => void } | null = null;
  let returned = 0;
  let sent = Readable.from([]);
  Object.assign(raw, {
    closed: isClosed,
    destroy: () => void (cutAt ??= performance.now()),
    setTimeout: (ms: number, end: () => void) => void (silence = { ms, end }),
  });
  const reply = { raw, send: (body: Readable) => void (sent = body) } as unknown as FastifyReply;
  async function* body() {
    for (let at = 0; at < pieces; at += 1) yield PIECE;
  }
  sendPaced(reply, body(), { [Symbol.dispose]: () => void (returned += 1) });
  const taken = sent.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  return {
    raw,
    take: () => taken.next(),
    cutAt: () => cutAt,
    silence: () => silence,
    returned: () => returned,
  };
}

test('a reader that takes a piece each two seconds is cut off after four minutes', async () => {
  const begunAt = performance.now();
  const { take, cutAt } = answerOf(1_000);
  while (cutAt() === null) {
    await take();
    await sleep(2_000);
  }
  // 120 s at the beginning, and a second for each piece that has passed.
  const seconds = ((cutAt() ?? 0) - begunAt) / 1_000;
  expect(seconds).toBeGreaterThan(230);
  expect(seconds).toBeLessThan(260);
});

test('one that takes a piece each second never is', async () => {
  const { take, cutAt } = answerOf(1_000);
  for (let pieces = 0; pieces < 900; pieces += 1) {
    await take();
    await sleep(1_000);
  }
  expect(cutAt()).toBe(null);
});

test('the end that a reader does not take has the same time', async () => {
  const { take, cutAt } = answerOf(2);
  for (let pieces = 0; pieces < 3; pieces += 1) await take();
  await sleep(119_000);
  expect(cutAt()).toBe(null);
  await sleep(2_000);
  expect(cutAt()).not.toBe(null);
});

test('one whose connection has taken nothing for a minute is cut off', async () => {
  const { silence, cutAt } = answerOf(2);
  expect(silence()?.ms).toBe(60_000);
  silence()?.end();
  expect(cutAt()).not.toBe(null);
});

test.each(['finish', 'close'])(
  'at its %s its place is given back, and no time goes on',
  async (end) => {
    const { raw, take, returned, cutAt } = answerOf(2);
    await take();
    expect(returned()).toBe(0);
    raw.emit(end);
    expect(returned()).toBe(1);
    await sleep(1_000_000);
    expect(cutAt()).toBe(null);
  },
);

test('a connection that is closed before has no place', () => {
  expect(answerOf(2, { isClosed: true }).returned()).toBe(1);
});

test('the time that the service takes for the pieces of an upload is not the client’s', async () => {
  let pieces = 0;
  for await (const piece of arriving(Readable.from([PIECE, PIECE, PIECE]))) {
    pieces += piece.length / PIECE.length;
    await sleep(200_000);
  }
  expect(pieces).toBe(3);
});
