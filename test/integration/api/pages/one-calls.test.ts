import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { createOneCalls, oneCallBounds, type Place } from '#src/features/pages/one-calls.ts';
import { sendBytes } from '#src/features/pages/send-bytes.ts';
import { isRejection } from '#src/kernel/errors.ts';

const log = { warn: () => undefined };

function begin(calls: ReturnType<typeof createOneCalls>, organizationId: string): Place {
  const place = calls.begin(organizationId);
  if (isRejection(place)) throw new Error(place.code);
  return place;
}

describe('calls at once', () => {
  const bounds = { calls: 24, answerBytes: 300 };

  it('are a third of an organization, and of all as many as the process makes', () => {
    const calls = createOneCalls({ log, bounds });
    const places = Array.from({ length: 8 }, () => begin(calls, 'acme'));
    expect(calls.begin('acme')).toMatchObject({
      code: 'ONE_CALL_LIMIT_EXCEEDED',
      context: { limit: 8 },
    });
    for (let at = 0; at < 16; at += 1) begin(calls, `org_${at % 2}`);
    expect(calls.begin('another')).toMatchObject({ code: 'UNAVAILABLE' });
    places[0]?.[Symbol.dispose]();
    // Four want some now: it is for the one that had none.
    expect(calls.begin('acme')).toMatchObject({ code: 'ONE_CALL_LIMIT_EXCEEDED' });
    begin(calls, 'another');
  });

  it('are made while the answers of others are read, as long as those have room', () => {
    const calls = createOneCalls({ log, bounds });
    const read = Array.from({ length: 8 }, () => begin(calls, 'acme'));
    for (const place of read) place.answered(30);
    // Three have a third of the room for answers; five keep their places.
    const more = Array.from({ length: 3 }, () => begin(calls, 'acme'));
    expect(calls.begin('acme')).toMatchObject({ code: 'ONE_CALL_LIMIT_EXCEEDED' });
    for (const place of [...read, ...more]) place[Symbol.dispose]();
    for (let at = 0; at < 8; at += 1) begin(calls, 'acme');
    expect(calls.begin('acme')).toMatchObject({ code: 'ONE_CALL_LIMIT_EXCEEDED' });
  });

  it('are as many as the memory of the process has room for', () => {
    const GIB = 1024 ** 3;
    expect(oneCallBounds({ memoryBytes: 2 * GIB })).toEqual({ calls: 25, answerBytes: GIB / 4 });
    expect(oneCallBounds({ memoryBytes: GIB / 8 }).calls).toBe(3);
    expect(oneCallBounds({ memoryBytes: 64 * GIB }).calls).toBe(48);
    expect(oneCallBounds({ memoryBytes: Infinity })).toMatchObject({ calls: 48 });
  });

  it('may end by themselves when the process stops, and are ended after that', async () => {
    const calls = createOneCalls({ log, drainMs: 10 });
    const place = begin(calls, 'acme');
    place.stopping.addEventListener('abort', () => place[Symbol.dispose]());
    const stopped = calls[Symbol.asyncDispose]();
    expect(calls.begin('acme')).toMatchObject({ code: 'UNAVAILABLE' });
    expect(place.stopping.aborted).toBe(false);
    await stopped;
    expect(place.stopping.reason).toMatchObject({ name: 'ServiceStopping' });
  });
});

describe('an answer', () => {
  /** A server whose answer has 16 MiB; `sent` resolves when it is over for the server. */
  async function startServer(bounds: { silenceMs?: number; withinMs?: number }) {
    const bytes = Buffer.alloc(16 * 1024 ** 2, 'x');
    const over = Promise.withResolvers<void>();
    const server = Fastify();
    server.get('/', async (_request, reply) => {
      await sendBytes(reply, bytes, bounds);
      over.resolve();
      return reply;
    });
    const url = await server.listen({ host: '127.0.0.1', port: 0 });
    const { port } = server.server.address() as AddressInfo;
    return { url, port, sent: over.promise, [Symbol.asyncDispose]: () => server.close() };
  }

  it('arrives whole', async () => {
    await using server = await startServer({});
    const answer = await fetch(server.url);
    expect((await answer.arrayBuffer()).byteLength).toBe(16 * 1024 ** 2);
    await server.sent;
  });

  it('of which nothing is read is ended', async () => {
    await using server = await startServer({ silenceMs: 100 });
    const socket = connect(server.port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    socket.on('error', () => undefined);
    await once(socket, 'readable');
    await server.sent;
    socket.destroy();
  });

  it('that is read too slowly is ended', async () => {
    await using server = await startServer({ withinMs: 200 });
    const socket = connect(server.port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    socket.on('error', () => undefined);
    await once(socket, 'readable');
    const reading = setInterval(() => socket.read(1_024), 10);
    await server.sent;
    clearInterval(reading);
    socket.destroy();
  });
});
