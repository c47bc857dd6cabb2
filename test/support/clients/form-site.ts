import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A web form, as drivers' first scripts fill in. */
export type FormSite = AsyncDisposable & { url: string };

const FORM = `<!doctype html><title>Web form</title>
<form action="/submitted"><input name="my-text"><input name="my-file" type="file">
<button>Submit</button></form>`;

export async function openFormSite(): Promise<FormSite> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://form');
    const text = url.searchParams.get('my-text') ?? '';
    const isSubmitted = url.pathname === '/submitted';
    const page = isSubmitted
      ? `<!doctype html><title>Submitted</title><p id="message">Received ${text}</p>`
      : FORM;
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
