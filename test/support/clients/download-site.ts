import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';

const CHUNK = Buffer.alloc(64 * 1024, 'x');

/** What a download of so many bytes has in it. */
export function bytesOf(length: number): Buffer {
  return Buffer.alloc(length, 'x');
}

/**
 * A site with a link to a download, and an input for a file: `/?name=N&bytes=B`.
 */
export async function startDownloadSite() {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://site');
    const length = Number(url.searchParams.get('bytes') ?? 5);
    if (url.pathname === '/file') {
      const name = encodeURIComponent(url.searchParams.get('name') ?? 'report.txt');
      response.setHeader('content-type', 'application/octet-stream');
      response.setHeader('content-disposition', `attachment; filename*=UTF-8''${name}`);
      response.setHeader('content-length', length);
      return void Readable.from(chunks(length))
        .on('error', () => {})
        .pipe(response);
    }
    response.setHeader('content-type', 'text/html');
    response.end(`<title>site</title><input type="file"><a href="/file${url.search}">get</a>`);
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    pageFor: (name: string, bytes: number) =>
      `${origin}/?${String(new URLSearchParams({ name, bytes: String(bytes) }))}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function* chunks(length: number): Generator<Buffer> {
  for (let left = length; left > 0; left -= CHUNK.length) yield CHUNK.subarray(0, left);
}
