import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { buffer as readBuffer, text as readText } from 'node:stream/consumers';
import { expect } from 'vitest';
import type { OpenApiDocument } from '#src/roles/api/docs/openapi-document.ts';
import { DEV_KEY } from '#test/support/service/service.ts';
import { createConformance } from '#test/support/service/api-conformance.ts';

export type Reply = {
  status: number;
  headers: IncomingHttpHeaders; // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
};

export type Sent = {
  /** Sent as JSON, unless it is text or bytes. */
  body?: unknown;
  headers?: Record<string, string | string[]>;
  /** null: no credential. */
  key?: string | null;
};

/** Sends requests, and checks every answer against the specification's rules for all answers. */
export type ApiClient = {
  send(method: string, path: string, sent?: Sent): Promise<Reply>;
  get(path: string, sent?: Sent): Promise<Reply>;
  create(body?: unknown, headers?: Record<string, string>): Promise<Reply>;
  extend(id: string, duration: unknown): Promise<Reply>;
  stop(id: string): Promise<Reply>;
  /** Sends raw bytes on a connection of their own; resolves with the one answer. */
  raw(bytes: string): Promise<Reply>;
  /** The same client with another credential. */
  as(key: string | null): ApiClient;
  /** The number of checked answers. */
  held(): number;
};

/**
 * A client of the service at this address; answers have to conform to the service's own OpenAPI
 * document.
 */
export async function connectApi(apiUrl: string): Promise<ApiClient> {
  const response = await fetch(`${apiUrl}/api/openapi.json`);
  const conformance = createConformance((await response.json()) as OpenApiDocument);
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  let held = 0;

  function hold(method: string, path: string, reply: Reply, sentAt: number): Reply {
    held += 1;
    const context = `${method} ${path.slice(0, 120)} → ${JSON.stringify(reply).slice(0, 600)}`;
    try {
      conformance.hold(method, path, reply, sentAt);
    } catch (error) {
      throw new Error(`${context}\n${(error as Error).message}`, { cause: error });
    }
    return reply;
  }

  async function raw(bytes: string): Promise<Reply> {
    const { hostname, port } = new URL(apiUrl);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    const sentAt = Date.now();
    socket.write(bytes, 'latin1');
    const [head = '', body = ''] = (await answerOn(socket)).split(/\r\n\r\n([^]*)/);
    const [statusLine = '', ...lines] = head.split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => {
        const [, name = '', value = ''] = /^([^:]+): ?(.*)$/.exec(line) ?? [];
        return [name.toLowerCase(), value];
      }),
    );
    const [method = '', path = ''] = bytes.split(' ', 2);
    const status = Number(statusLine.split(' ')[1]);
    return hold(method, path, { status, headers, body: parse(body, false) }, sentAt);
  }

  function clientFor(key: string | null): ApiClient {
    async function send(method: string, path: string, sent: Sent = {}): Promise<Reply> {
      const { body, headers = {}, key: otherKey } = sent;
      const credential = otherKey === undefined ? key : otherKey;
      const bytes = bytesOf(body);
      const request = httpRequest(apiUrl, {
        agent,
        method,
        path,
        headers: {
          ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
          ...(bytes === null
            ? {}
            : { 'content-type': 'application/json', 'content-length': bytes.length }),
          ...headers,
        },
      });
      const sentAt = Date.now();
      const answered = once(request, 'response');
      request.end(bytes);
      const [response] = (await answered) as [import('node:http').IncomingMessage];
      const { statusCode: status = 0, headers: own } = response;
      const isPicture = own['content-type']?.startsWith('image/') === true && method !== 'HEAD';
      const isText = own['content-type']?.startsWith('text/') === true;
      const answer = isPicture
        ? await readBuffer(response)
        : parse(await readText(response), isText);
      return hold(method, path, { status, headers: own, body: answer }, sentAt);
    }
    return {
      send,
      get: (path, sent) => send('GET', path, sent),
      create: (body = {}, headers = {}) => send('POST', '/api/sessions', { body, headers }),
      extend: (id, duration) => send('POST', `/api/sessions/${id}/extend`, { body: { duration } }),
      stop: (id) => send('DELETE', `/api/sessions/${id}`),
      raw,
      as: clientFor,
      held: () => held,
    };
  }
  return clientFor(DEV_KEY);
}

function bytesOf(body: unknown): Buffer | null {
  if (body === undefined) return null;
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

function parse(text: string, isText: boolean): Reply['body'] {
  if (text === '') return null;
  return isText || text.startsWith('<') ? text : JSON.parse(text);
}

/** The bytes until the other side closes, or up to the Content-Length. */
async function answerOn(socket: import('node:net').Socket): Promise<string> {
  let received = '';
  for await (const chunk of socket.setEncoding('latin1')) {
    received += String(chunk);
    const [, head = ''] = /^([^]*?\r\n)\r\n/.exec(received) ?? [];
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? Number.NaN);
    if (received.length >= head.length + 2 + length) break;
  }
  socket.destroy();
  return received;
}

/** An answer's error name and status together, so that a failing test shows both. */
export function errorOf({ status, body }: Reply): string {
  return status < 400 ? `${status}` : `${status} ${body.error}`;
}

/** The format of all timestamps: ISO 8601 UTC with milliseconds. */
export const timestamp: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
