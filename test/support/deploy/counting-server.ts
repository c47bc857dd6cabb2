import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

/** A process behind a proxy: what it was asked is counted before it answers. */
export type CountingServer = AsyncDisposable & {
  port: number;
  /** `METHOD path` of each request whose head has arrived. */
  asked: string[];
};

export async function startCounting(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<CountingServer> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    // A proxy that gives up is no failure of a test.
    for (const stream of [request, response]) stream.on('error', () => undefined);
    answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
