import { once } from 'node:events';
import { Readable } from 'node:stream';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, createGunzip, deflateSync, gzipSync } from 'node:zlib';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { decodeBodies } from '#src/roles/api/http/body-coding.ts';
import { openConnection } from '#test/support/http/raw-connection.ts';

/** Bodies that cannot be decoded, on routes that read them late, in part or not at all. */

const JSON_BYTES_MAX = 1_000;
/** The first pieces can be decoded, what follows cannot. */
const broken = (whole: Buffer) => {
  const half = Math.floor(whole.length / 2);
  return Buffer.concat([whole.subarray(0, half), Buffer.alloc(whole.length, 0xff)]);
};
const LONG = Buffer.from(Array.from({ length: 400_000 }, (_, at) => (at * at * 31) >> (at % 13)));
const PACKED = gzipSync(LONG);
const CODED: [coding: string, body: Buffer][] = [
  ['gzip', Buffer.from('no such thing')],
  ['deflate', Buffer.from('no such thing')],
  ['br', Buffer.from('no such thing')],
  ['gzip', broken(gzipSync(LONG))],
  ['deflate', broken(deflateSync(LONG))],
  ['br', broken(brotliCompressSync(LONG))],
];

let server: FastifyInstance;
let at: URL;
/** Errors that would have ended the process. */
let thrown: unknown[];
/** The body of the last request to /late, and what makes its handler go on. */
let late: PromiseWithResolvers<Readable>;
let goOn: PromiseWithResolvers<void>;

beforeEach(async () => {
  thrown = [];
  late = Promise.withResolvers();
  goOn = Promise.withResolvers();
  const others = process.rawListeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => void thrown.push(error));
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException');
    for (const other of others) process.on('uncaughtException', other as () => void);
  });
  server = Fastify({ bodyLimit: JSON_BYTES_MAX, forceCloseConnections: true });
  decodeBodies(server);
  server.addContentTypeParser('text/plain', (_request, body, done) => done(null, body));
  server.post('/unread', async () => 'not read');
  server.post('/json', async () => 'read');
  server.post('/late', async (request) => {
    const body = request.body as Readable;
    late.resolve(body);
    await goOn.promise;
    let bytes = 0;
    for await (const piece of body) bytes += (piece as Buffer).length;
    return bytes;
  });
  await server.listen({ port: 0, host: '127.0.0.1' });
  at = new URL(`http://127.0.0.1:${(server.server.address() as AddressInfo).port}`);
});
afterEach(() => server.close());

const send = (path: string, coding: string, body: Buffer) =>
  fetch(new URL(path, at), {
    method: 'POST',
    headers: {
      'content-encoding': coding,
      'content-type': path === '/json' ? 'application/json' : 'text/plain',
    },
    body: new Uint8Array(body),
  }).then(({ status }) => status);

/** Until the threads of zlib have done what they were given before. */
async function untilDecoded(): Promise<void> {
  for (let turns = 0; turns < 4; turns += 1)
    await once(Readable.from([PACKED]).pipe(createGunzip()).resume(), 'end');
}

test.each(CODED)('a body without a reader ends nothing: %s', async (coding, body) => {
  expect(await send('/unread', coding, body)).toBe(200);
  await untilDecoded();
  expect(thrown).toEqual([]);
});

test.each(CODED)('one that is read late is refused then: %s', async (coding, body) => {
  const answer = send('/late', coding, body);
  await late.promise;
  await untilDecoded();
  goOn.resolve();
  expect(await answer).toBe(500);
  expect(thrown).toEqual([]);
});

test.each(CODED.slice(3))('one whose reader stops at its bound: %s', async (coding, body) => {
  expect([400, 413]).toContain(await send('/json', coding, body));
  await untilDecoded();
  expect(thrown).toEqual([]);
});

test('one whose client goes before its end', async () => {
  for (const path of ['/unread', '/late', '/json']) {
    const connection = await openConnection(at);
    const type = path === '/json' ? 'application/json' : 'text/plain';
    const coded = `Content-Encoding: gzip\r\nContent-Length: ${PACKED.length}`;
    const head = `Content-Type: ${type}\r\n${coded}`;
    connection.write(`POST ${path} HTTP/1.1\r\nHost: a\r\n${head}\r\n\r\n`);
    connection.write(PACKED.subarray(0, 5_000));
    if (path === '/late') await late.promise;
    connection.resetAndDestroy();
    goOn.resolve();
    await untilDecoded();
  }
  expect(thrown).toEqual([]);
});
