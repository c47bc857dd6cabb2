import { afterAll, beforeAll, test } from 'vitest';
import { openConnection, uploadHead } from '#test/support/http/raw-connection.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';

/** Clients that send and read slowly, over connections. */

let app: Awaited<ReturnType<typeof startApp>>;
let url: URL;
let id: string;
beforeAll(async () => {
  app = await startApp();
  url = new URL(await app.listen());
  id = (await app.request('POST', '/api/sessions', {})).body.id;
});
afterAll(() => app?.[Symbol.asyncDispose]());

const HEAD = 'Host: a\r\nAuthorization: Bearer any\r\n';
const put = (name: string, length: number) => uploadHead(id, name, length);

const open = () => openConnection(url);

test('uploads beyond the organization’s places are refused, and theirs come back', async () => {
  const drips = await Promise.all(Array.from({ length: 4 }, () => open()));
  for (const [at, socket] of drips.entries()) socket.write(`${put(`drip-${at}`, 1_000)}x`);
  const path = `/api/sessions/${id}/files/more`;
  await eventually(async () => {
    const { status, body } = await app.request('PUT', path, Buffer.from('more'), OCTETS);
    return status === 429 && body.error === 'TRANSFER_LIMIT_EXCEEDED' && body.context.limit === 4;
  }, 'the places are taken');
  for (const socket of drips) socket.destroy();
  await eventually(async () => {
    const { status } = await app.request('PUT', path, Buffer.from('more'), OCTETS);
    return status === 201 || status === 200;
  }, 'the places are free again');
});

test('who does not read a file has a place until the connection ends', async () => {
  const bytes = Buffer.alloc(1024 ** 2, 'x');
  await app.request('PUT', `/api/sessions/${id}/files/large`, bytes, OCTETS);
  const path = `/api/sessions/${id}/files/large`;
  const readers = await Promise.all(Array.from({ length: 5 }, () => open()));
  for (const socket of readers) {
    socket.pause();
    // More than the system takes for one connection: the file again and again.
    socket.write(`GET ${path} HTTP/1.1\r\n${HEAD}\r\n`.repeat(32));
  }
  await eventually(async () => {
    const { status, bytes: answer } = await app.download(path);
    return status === 429 && answer.includes('TRANSFER_LIMIT_EXCEEDED');
  }, 'the places are taken');
  for (const socket of readers) socket.destroy();
  await eventually(async () => (await app.download(path)).status === 200, 'they are free again');
});

const OCTETS = { 'content-type': 'application/octet-stream' };
