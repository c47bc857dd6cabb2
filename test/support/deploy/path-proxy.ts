import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An address of a proxy, below a path, that leads to a service at its root. */
export type PathProxy = AsyncDisposable & { url: string };

/** Passes on what is below the path, without the path, as nginx's `proxy_pass http://api/`. */
export async function startPathProxy(target: string, path: string): Promise<PathProxy> {
  const server = createServer((asked, answer) => {
    const { method, headers, url = '' } = asked;
    if (!url.startsWith(`${path}/`)) {
      answer.writeHead(404).end(`nothing of the service is at ${url}`);
      return;
    }
    const sent = request(target + url.slice(path.length), { method, headers }, (answered) => {
      answer.writeHead(answered.statusCode ?? 502, answered.headers);
      answered.pipe(answer);
    });
    sent.on('error', () => answer.destroy());
    asked.pipe(sent);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
