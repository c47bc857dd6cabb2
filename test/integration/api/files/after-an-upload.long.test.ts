import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openConnection, uploadHead } from '#test/support/http/raw-connection.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';

/** The time that a request may take, after one that may take longer. */

let app: Awaited<ReturnType<typeof startApp>>;
let url: URL;
let id: string;
beforeAll(async () => {
  app = await startApp();
  url = new URL(await app.listen());
  id = (await app.request('POST', '/api/sessions', {})).body.id;
});
afterAll(() => app?.[Symbol.asyncDispose]());

const put = (name: string, length: number) => uploadHead(id, name, length);

const open = () => openConnection(url);

test('after an upload the next request on the connection has its 10 s again, and no more', async () => {
  const socket = await open();
  socket.write(`${put('two', 2)}ab`);
  await eventually(async () => socket.said().includes(' 201 '), 'the upload is answered');
  socket.write('GET /api/health HTTP/1.1\r\nHost:');
  await once(socket, 'close');
  expect(socket.said()).toContain('HTTP/1.1 400 Bad Request');
  expect(socket.said()).toContain('The request has not arrived whole in time.');
});
