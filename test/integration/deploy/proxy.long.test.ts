import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { connect as connectHttp2 } from 'node:http2';
import type { IncomingMessage, RequestOptions } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer, json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { startCounting, type CountingServer } from '#test/support/deploy/counting-server.ts';
import { extensionZip, MANIFEST } from '#test/support/extensions/extension-zip.ts';
import { findNginx } from '#test/support/servers/debian-programs.ts';
import { startNginx, type NginxOptions, type RealNginx } from '#test/support/deploy/real-nginx.ts';
import {
  shareService,
  type SharedService,
  type Tenant,
} from '#test/support/shared/shared-service.ts';
import { eventually } from '#test/support/service/service.ts';

/** deploy/nginx.conf in a real nginx: bodies, slow readers, and what is sent to a second server. */

const program = await findNginx();
const MIB = 1024 * 1024;
/** Without nginx, test/support/summary.ts reports that these were left out. */
const withNginx = describe.runIf(program !== null);

const start = (options: Omit<NginxOptions, 'program'>) =>
  startNginx({ program: program ?? '', ...options });

/** Sends a request, and resolves with its answer, of which nothing has been read. */
async function send(
  nginx: RealNginx,
  options: RequestOptions,
  write: (sent: ReturnType<typeof httpsRequest>) => void = (sent) => void sent.end(),
): Promise<IncomingMessage> {
  const sent = httpsRequest({ host: '127.0.0.1', port: nginx.port, ca: nginx.ca, ...options });
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  write(sent);
  const [answer] = await answered;
  // The rest of a body that was refused may find the connection closed.
  sent.on('error', () => undefined);
  return answer;
}

withNginx('bodies and slow readers', () => {
  let api: CountingServer;
  let nginx: RealNginx;
  /** Bytes of the body that have arrived. */
  let arrived = 0;
  /** The answer of 28 MB has left the server. */
  let hasWrittenAll = false;
  const ANSWER = 28 * MIB;

  beforeAll(async () => {
    api = await startCounting((request, response) => {
      if (request.method === 'PUT' || request.method === 'POST') {
        request.on('data', (piece: Buffer) => (arrived += piece.length));
        request.on('end', () => response.end(JSON.stringify({ arrived })));
        return;
      }
      response.once('finish', () => (hasWrittenAll = true));
      response.writeHead(200, { 'content-length': ANSWER });
      response.end(Buffer.alloc(ANSWER, 1));
    });
    nginx = await start({ api: [api.port], gateway: [api.port] });
  });
  afterAll(async () => {
    await nginx[Symbol.asyncDispose]();
    await api[Symbol.asyncDispose]();
  });

  test.each([
    ['PUT', '/api/sessions/ses_1/files/a.bin', 2],
    ['PUT', '/api/sessions/ses_1/files/a.bin', 64],
    ['POST', '/api/extensions', 18],
    ['POST', '/wd/hub/session/1/file', 30],
  ] as const)('%s %s of %i MB arrives, and as it is sent', async (method, path, size) => {
    arrived = 0;
    const half = Buffer.alloc((size * MIB) / 2, 1);
    const answer = await send(
      nginx,
      { method, path, headers: { 'content-length': size * MIB } },
      (sent) => {
        sent.write(half);
        // The second half is not sent before some of the first is there.
        void eventually(() => arrived > 0, 'a part is there').then(() => sent.end(half));
      },
    );
    expect([answer.statusCode, await json(answer)]).toEqual([200, { arrived: size * MIB }]);
    expect(kept()).toEqual([]);
  });

  test('an upload over HTTP/2 arrives without a length', async () => {
    arrived = 0;
    const client = connectHttp2(nginx.url, { ca: nginx.ca });
    const stream = client.request({
      ':method': 'PUT',
      ':path': '/api/sessions/ses_1/files/a.bin',
    });
    for (let sent = 0; sent < 8; sent += 1) stream.write(Buffer.alloc(MIB, 1));
    stream.end();
    expect(await json(stream)).toEqual({ arrived: 8 * MIB });
    client.close();
  });

  test('an answer of 28 MB waits at the service for a client that reads slowly', async () => {
    const path = '/api/sessions/ses_1/files/a.bin';
    hasWrittenAll = false;
    const answer = await send(nginx, { method: 'GET', path });
    let read = 0;
    let isAhead = false;
    for await (const piece of answer as AsyncIterable<Buffer>) {
      // The network holds some megabytes. A proxy that keeps answers has all of it long before.
      if (read < ANSWER / 2 && read + piece.length >= ANSWER / 2) isAhead = hasWrittenAll;
      read += piece.length;
      if (read < ANSWER / 2) await new Promise((resolve) => setTimeout(resolve, 4));
    }
    expect([read, isAhead]).toEqual([ANSWER, false]);
    expect(kept()).toEqual([]);
  });

  test('what the proxy refuses has the API’s form', async () => {
    const options = {
      method: 'POST',
      path: '/api/sessions',
      headers: { 'content-length': 2 * MIB },
    };
    const large = await send(nginx, options, (sent) => void sent.end(Buffer.alloc(2 * MIB)));
    expect([large.statusCode, await json(large)]).toMatchObject([
      413,
      { error: 'PAYLOAD_TOO_LARGE' },
    ]);
    const metrics = await send(nginx, { method: 'GET', path: '/metrics' });
    expect([metrics.statusCode, await json(metrics)]).toMatchObject([404, { error: 'NOT_FOUND' }]);
  });

  /** Files in which the proxy keeps bodies and answers. */
  function kept(): string[] {
    return ['body', 'proxy'].flatMap((name) =>
      readdirSync(`${nginx.folder}/${name}`, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => entry.name),
    );
  }
});

const READS = ['GET', 'HEAD'];
const PLACES = [
  ['/api/sessions/ses_1/files/a.bin', ['GET', 'HEAD', 'PUT', 'DELETE']],
  ['/api/sessions/ses_1', ['GET', 'HEAD', 'PATCH', 'DELETE']],
  ['/api/extensions', ['GET', 'POST']],
  ['/api/organization/origins', ['PUT']],
  ['/api/screenshot', ['POST']],
  ['/mcp', ['GET', 'POST', 'DELETE']],
  ['/wd/hub/session/1/url', ['GET', 'POST']],
  ['/wd/hub/session/1', ['DELETE']],
  ['/json/new', ['PUT']],
] as const;
const requests = PLACES.flatMap(([path, methods]) =>
  methods.map((method) => [method, path] as const),
);

withNginx('of two servers', () => {
  const unanswered: [string, (request: IncomingMessage) => void][] = [
    ['does not answer in time', () => undefined],
    [
      'dies with the request',
      (request) => request.once('readable', () => request.socket.destroy()),
    ],
    ['dies before it has read a body', (request) => void request.socket.destroy()],
  ];
  describe.each(unanswered)('where each %s', (_, behave) => {
    let servers: CountingServer[];
    let nginx: RealNginx;
    beforeAll(async () => {
      const start2 = () => startCounting(behave);
      servers = await Promise.all([start2(), start2()]);
      const ports = servers.map(({ port }) => port);
      // 75 s, 100 s, 350 s, 615 s, a day.
      const changes = ['75', '100', '350', '615', '86400'].map((seconds): [string, string] => [
        `proxy_read_timeout ${seconds}s`,
        'proxy_read_timeout 1s',
      ]);
      nginx = await start({ api: ports, gateway: ports, changes });
    });
    afterAll(async () => {
      await nginx[Symbol.asyncDispose]();
      for (const server of servers) await server[Symbol.asyncDispose]();
    });

    test.concurrent.each(requests)(
      '%s %s is sent to both only if it reads',
      async (method, path) => {
        const mine = `${path}?of=${method}`;
        const bytes = READS.includes(method) || method === 'DELETE' ? 0 : 40_000;
        const headers = bytes === 0 ? {} : { 'content-length': bytes };
        const answer = await send(nginx, { method, path: mine, headers }, (sent) => {
          sent.end(Buffer.alloc(bytes, 1));
        });
        await buffer(answer);
        expect(answer.statusCode).toBe(503);
        const times = servers
          .flatMap(({ asked }) => asked)
          .filter((one) => one === `${method} ${mine}`);
        expect(times).toHaveLength(READS.includes(method) ? 2 : 1);
      },
    );
  });

  test('one that is not there is passed over where nothing was sent', async () => {
    await using server = await startCounting((_, response) => void response.end('{}'));
    const gone = await startCounting(() => undefined);
    await gone[Symbol.asyncDispose]();
    const ports = [gone.port, server.port];
    await using nginx = await start({ api: ports, gateway: ports });
    for (const method of ['GET', 'POST', 'PATCH', 'GET', 'POST', 'PATCH']) {
      const answer = await send(nginx, { method, path: '/api/sessions/ses_1' });
      expect([method, answer.statusCode]).toEqual([method, 200]);
    }
  });
});

withNginx('in front of the service', () => {
  let shared: SharedService;
  let tenant: Tenant;
  let nginx: RealNginx;
  beforeAll(async () => {
    shared = await shareService();
    tenant = await shared.organization();
    const port = Number(new URL(shared.service.apiUrl).port);
    nginx = await start({ api: [port], gateway: [port] });
  });
  afterAll(async () => {
    await nginx[Symbol.asyncDispose]();
    await shared[Symbol.asyncDispose]();
  });
  const upload = (body: Buffer) =>
    send(
      nginx,
      {
        method: 'POST',
        path: '/api/extensions',
        headers: {
          authorization: `Bearer ${tenant.key}`,
          'content-type': 'application/zip',
          'content-length': body.length,
        },
      },
      (sent) => void sent.end(body),
    );

  test('an extension of 18 MB is stored, and one that is too large refused by the API', async () => {
    const zip = await extensionZip(MANIFEST, {
      'code/mark.js': 'true;',
      'large.bin': randomBytes(18 * MIB),
    });
    const stored = await upload(zip);
    expect([stored.statusCode, await json(stored)]).toMatchObject([201, { name: 'Marker' }]);
    for (const size of [20.5, 24]) {
      const refused = await upload(Buffer.alloc(size * MIB));
      expect([refused.statusCode, await json(refused)]).toMatchObject([
        413,
        { error: 'PAYLOAD_TOO_LARGE' },
      ]);
    }
  });

  test('a body without a credential is refused before it is read', async () => {
    const options = {
      method: 'POST',
      path: '/api/extensions',
      headers: { 'content-length': 18 * MIB },
    };
    const refused = await send(nginx, options, (sent) => void sent.end(Buffer.alloc(18 * MIB)));
    expect([refused.statusCode, await json(refused)]).toMatchObject([
      401,
      { error: 'UNAUTHORIZED' },
    ]);
  });
});

withNginx('a socket', () => {
  test('passes both ways', async () => {
    await using gateway = await startCounting(() => undefined);
    const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(data)));
    await once(sockets, 'listening');
    const { port } = sockets.address() as AddressInfo;
    await using nginx = await start({ api: [gateway.port], gateway: [port] });
    const socket = new WebSocket(`${nginx.url.replace('https', 'wss')}/devtools/browser/x`, {
      ca: nginx.ca,
    });
    await once(socket, 'open');
    socket.send('hello');
    const [echo] = (await once(socket, 'message')) as [Buffer];
    expect(echo.toString()).toBe('hello');
    socket.terminate();
    sockets.close();
  });
});
