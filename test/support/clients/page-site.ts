import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ServiceError } from '#src/apps/client/client.ts';

/** Answers of a site, by path; a text is a page. */
export type Pages = Record<string, string | RequestListener>;

/** A site on this machine; `pages` may be changed while it runs. */
export type PageSite = { url: string; pages: Pages; asked: string[] } & AsyncDisposable;

export async function startPageSite(pages: Pages): Promise<PageSite> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://site').pathname;
    asked.push(path);
    const page = pages[path];
    if (typeof page === 'function') return page(request, response);
    response.writeHead(page === undefined ? 404 : 200, {
      'content-type': 'text/html; charset=utf-8',
    });
    response.end(page ?? '<title>Not here</title>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    pages,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The refusal of a call. @throws Error if it was not refused */
export async function refusal(call: Promise<unknown>): Promise<ServiceError> {
  const error = await call.catch((thrown: unknown) => thrown);
  if (error instanceof ServiceError) return error;
  throw new Error('the call was not refused', { cause: error });
}
