import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
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

const HEAD = 'Host: a\r\nAuthorization: Bearer any\r\n';
const put = (name: string, length: number) =>
  `PUT /api/sessions/${id}/files/${name} HTTP/1.1\r\n${HEAD}Content-Length: ${length}\r\n\r\n`;

async function open(): Promise<Socket & { said: () => string }> {
  const socket = connect(Number(url.port), url.hostname);
  let said = '';
  socket.setEncoding('utf8').on('data', (text: string) => void (said += text));
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return Object.assign(socket, { said: () => said });
}

test('after an upload the next request on the connection has its 10 s again, and no more', async () => {
  const socket = await open();
  socket.write(`${put('two', 2)}ab`);
  await eventually(async () => socket.said().includes(' 201 '), 'the upload is answered');
  socket.write('GET /api/health HTTP/1.1\r\nHost:');
  await once(socket, 'close');
  expect(socket.said()).toContain('HTTP/1.1 400 Bad Request');
  expect(socket.said()).toContain('The request has not arrived whole in time.');
});
