import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { expect, test } from 'vitest';
import { holdBody } from '#src/features/webdriver/arriving-body.ts';
import type { Drivers } from '#src/features/webdriver/drivers.ts';
import { sendCommand } from '#src/features/webdriver/pass-command.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { TooSlow } from '#src/roles/api/files/paced-body.ts';
import type { TransferKind, Transfers } from '#src/roles/api/http/transfers.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** What bodies at /wd/hub hold, and how long. */

useVirtualTime();

const BOUNDS = { bytesMax: 1024, tooLarge: 'It may have 1 KiB.' };
const never = new Promise<never>(() => undefined);

/** A request whose body has these pieces, and then stalls or ends. */
function requestOf(headers: Record<string, string>, pieces: string[], isWhole: boolean) {
  async function* body() {
    for (const piece of pieces) yield Buffer.from(piece);
    if (!isWhole) await never;
  }
  const socket = Object.assign(new EventEmitter(), { setTimeout: () => undefined });
  const raw = Object.assign(Readable.from(body()), { socket, complete: false });
  const caller = { organizationId: 'acme' };
  return { method: 'POST', headers, raw, caller } as unknown as FastifyRequest;
}
const CHUNKED = { 'transfer-encoding': 'chunked' };

/** The kinds of the places that are taken. */
function countPlaces() {
  const taken: TransferKind[] = [];
  const transfers: Transfers = {
    async begin(kind) {
      taken.push(kind);
      return { [Symbol.dispose]: () => void taken.splice(taken.indexOf(kind), 1) };
    },
  };
  return { taken, transfers };
}

test('a body without a length that stalls is refused after 30 s, and its place is free', async () => {
  const { taken, transfers } = countPlaces();
  const held = holdBody(requestOf(CHUNKED, ['x'], false), transfers, BOUNDS);
  const begunAt = performance.now();
  expect(await held).toMatchObject({
    code: 'INVALID_REQUEST',
    message: expect.stringMatching(/silent for 30 s/),
  });
  expect(performance.now() - begunAt).toBe(30_000);
  expect(taken).toEqual([]);
});

test('a body in memory has its place until it is disposed of', async () => {
  const { taken, transfers } = countPlaces();
  for (const headers of [CHUNKED, { 'content-length': '9', 'content-encoding': 'gzip' }]) {
    const held = await holdBody(requestOf(headers, ['ab', 'c'], true), transfers, BOUNDS);
    if (isRejection(held)) throw new Error(held.message);
    expect([held.bytes.toString(), taken]).toEqual(['abc', ['command']]);
    held[Symbol.dispose]();
    expect(taken).toEqual([]);
  }
});

test('a small body whose length is known has no place, and one that is too large neither', async () => {
  const { taken, transfers } = countPlaces();
  const small = requestOf({ 'content-length': '3' }, ['abc'], true);
  expect(await holdBody(small, transfers, BOUNDS)).toHaveProperty('bytes');
  const large = { code: 'PAYLOAD_TOO_LARGE', message: BOUNDS.tooLarge };
  const told = requestOf({ 'content-length': '1025' }, [], false);
  expect(await holdBody(told, transfers, BOUNDS)).toMatchObject(large);
  const untold = requestOf(CHUNKED, ['x'.repeat(1025)], false);
  expect(await holdBody(untold, transfers, BOUNDS)).toMatchObject(large);
  expect(taken).toEqual([]);
});

/** A gateway that takes the body of a command to its end. */
function gatewayOf(answer: () => void = () => undefined): Drivers {
  return {
    async send(_url, { body }) {
      if (body.from instanceof Readable) await body.from.toArray();
      answer();
      return { response: {} as never, isDrivers: true };
    },
    [Symbol.dispose]: () => undefined,
  };
}
const FILE = { driverUrl: 'http://gateway', path: '/session/1/file' };
const signal = new AbortController().signal;

test('an upload has the place of one until its command is answered', async () => {
  const { taken, transfers } = countPlaces();
  let during: TransferKind[] = [];
  const drivers = gatewayOf(() => (during = [...taken]));
  const request = requestOf({ 'content-length': '2' }, ['{', '}'], true);
  await sendCommand({ drivers, transfers }, FILE, request, signal);
  expect([during, taken]).toEqual([['upload'], []]);
});

test('an upload that stalls ends after 30 s, and its place is free', async () => {
  const { taken, transfers } = countPlaces();
  const zip = '{"file":"UEsDBBQAAAAIAAAAAAAAAAAA';
  const request = requestOf({ 'content-length': '100000' }, [zip], false);
  const begunAt = performance.now();
  const sent = sendCommand({ drivers: gatewayOf(), transfers }, FILE, request, signal);
  await expect(sent).rejects.toThrow(TooSlow);
  expect(performance.now() - begunAt).toBe(30_000);
  expect(taken).toEqual([]);
});

test('a command that fails or is refused gives its place back', async () => {
  const { taken, transfers } = countPlaces();
  const drivers = gatewayOf(() => {
    throw new Error('no gateway');
  });
  const request = requestOf(CHUNKED, ['{}'], true);
  const sent = sendCommand({ drivers, transfers }, { ...FILE, path: '/url' }, request, signal);
  await expect(sent).rejects.toThrow('no gateway');
  expect(taken).toEqual([]);
});
