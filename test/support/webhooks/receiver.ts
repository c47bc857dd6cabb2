import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

/** A delivery that was verified. */
export type Received = {
  id: string;
  type: string;
  data: { sequence: number; subject: string; state: unknown };
  headers: Record<string, string>;
  body: string;
  /** Of the URL that it was sent to. */
  path: string;
};

/** Answers a delivery; without it 204. @param count deliveries of the same event before */
export type Answer = (got: Received, count: number, reply: ServerResponse) => void;

/**
 * A receiver, which verifies what it gets with the package of the specification.
 * @param secretOf the secret for a path of its URL
 * @param host address at which it listens
 */
export async function startReceiver(
  secretOf: (path: string) => string,
  answer?: Answer,
  host = '127.0.0.1',
) {
  const received: Received[] = [];
  const refused: string[] = [];
  let answering = answer;
  const server = createServer((request, reply) => void handle(request, reply));
  async function handle(request: IncomingMessage, reply: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString('utf8');
    const headers = request.headers as Record<string, string>;
    const path = request.url ?? '';
    try {
      const got = verified(secretOf(path), body, headers, path);
      const count = received.filter(({ id }) => id === got.id).length;
      received.push(got);
      if (answering === undefined) reply.writeHead(204).end();
      else answering(got, count, reply);
    } catch (error) {
      refused.push(String(error));
      reply.writeHead(401).end();
    }
  }
  await new Promise<void>((resolve) => void server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host}:${port}/hook`,
    received,
    /** Why deliveries were not verified. */
    refused,
    answer(next: Answer | undefined) {
      answering = next;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}

/** @throws where the signature is not of this secret, or too old */
export function verified(
  secret: string,
  body: string,
  headers: Record<string, string>,
  path: string,
): Received {
  const content = new Webhook(secret).verify(body, headers) as Omit<Received, 'id'>;
  return { ...content, id: headers['webhook-id'] ?? '', headers, body, path };
}
