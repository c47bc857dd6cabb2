import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { Server } from 'proxy-chain';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from 'vitest';
import type { EgressRules } from '#events/egress.ts';
import type { IsPeer } from '#src/browsers/egress-endpoint.ts';
import type { EgressProxy } from '#src/browsers/egress-endpoint.ts';
import { openEgressProxy } from '#src/features/egress/egress-proxy.ts';

/** A web server on 127.0.0.1, which stands for the Internet; 127.0.0.9 is a private network. */
const web = createServer((asked, answer) =>
  answer.end(`hello from ${asked.headers.host ?? ''}${asked.url ?? ''}`),
);
const echo = createTcpServer((socket) => void socket.on('error', () => {}).pipe(socket));
let webPort = 0;
let echoPort = 0;
beforeAll(async () => {
  await once(web.listen(0, '0.0.0.0'), 'listening');
  await once(echo.listen(0, '0.0.0.0'), 'listening');
  webPort = (web.address() as AddressInfo).port;
  echoPort = (echo.address() as AddressInfo).port;
});
afterAll(() => {
  web.close().closeAllConnections();
  echo.close();
});

const PRIVATE = '127.0.0.9';
const NAMES: Record<string, string[]> = {
  'open.example.com': ['127.0.0.1'],
  'other.example.com': ['127.0.0.1'],
  'inside.example.com': [PRIVATE],
  'both.example.com': [PRIVATE, '127.0.0.1'],
  'denied.example.com': ['127.0.0.2'],
  'proxy.example.com': ['127.0.0.1'],
  'own.example.com': ['127.0.0.1'],
};

type Opened = EgressProxy & { port: number; asked: string[] };

/** The connections of this process are the browser's. */
const everyone = async () => true;

async function open(
  rules: Partial<EgressRules>,
  password?: string,
  isPeer: IsPeer = everyone,
): Promise<Opened> {
  const asked: string[] = [];
  const proxy = openEgressProxy({
    rules: { deny: [], ...rules },
    ...(password !== undefined && { password }),
    resolve: async (name) => {
      asked.push(name);
      return NAMES[name] ?? [];
    },
    isClosed: async (address) => address === PRIVATE || !address.startsWith('127.'),
    isOwnHost: (host) => host === 'own.example.com',
  });
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  return { ...proxy, port: await proxy.listen(isPeer), asked };
}

/** GET through the proxy, as a browser does for plain HTTP. */
async function get({ port }: Opened, host: string, at = webPort) {
  const asked = request({ port, path: `http://${host}:${at}/`, headers: { host } }).end();
  const [answer] = (await once(asked, 'response')) as [NodeJS.ReadableStream & Answer];
  let body = '';
  for await (const chunk of answer) body += String(chunk);
  return { status: answer.statusCode, refused: answer.headers['x-egress-refused'], body };
}
type Answer = { statusCode: number; headers: Record<string, string> };

/** A tunnel through the proxy, as for HTTPS: the status and what comes back. */
async function tunnel({ port }: Opened, place: string, text = 'ping') {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n\r\n`);
  const status = Number((await nextText(socket)).split(' ')[1]);
  if (status !== 200) return { status, said: '' };
  socket.write(text);
  return { status, said: await nextText(socket) };
}

async function nextText(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return chunk.toString();
}

describe('a request', () => {
  it('to an allowed host is served, as plain HTTP and as a tunnel', async () => {
    const proxy = await open({ allow: ['open.example.com'] });
    expect((await get(proxy, 'open.example.com')).body).toBe('hello from open.example.com/');
    expect(await tunnel(proxy, `open.example.com:${echoPort}`)).toEqual({
      status: 200,
      said: 'ping',
    });
  });

  it('to another host is refused, and its name is not looked up', async () => {
    const proxy = await open({ allow: ['open.example.com'] });
    expect(await get(proxy, 'other.example.com')).toMatchObject({
      status: 403,
      refused: 'not_allowed',
    });
    expect(await tunnel(proxy, `other.example.com:${echoPort}`)).toMatchObject({ status: 403 });
    expect(proxy.asked).toEqual([]);
  });

  test.each([
    ['a name that resolves to it', 'inside.example.com'],
    ['its address', PRIVATE],
    ['its address as a number', '2130706441'],
    ['its address in octal', '0177.0.0.011'],
    ['its address within IPv6', `[::ffff:${PRIVATE}]`],
    ['link-local metadata', '169.254.169.254'],
    ['loopback of IPv6', '[::1]'],
  ])('to a private network is refused: %s', async (_, host) => {
    const proxy = await open({ allow: ['*.example.com', '0.0.0.0/0', '::/0'] });
    const refused = { status: 403, refused: 'private_network' };
    expect(await get(proxy, host)).toMatchObject(refused);
    expect(await tunnel(proxy, `${host}:${echoPort}`)).toMatchObject({ status: 403 });
  });

  it('connects to none but the judged addresses of a name', async () => {
    const proxy = await open({ deny: ['127.0.0.2'] });
    expect((await get(proxy, 'both.example.com')).status).toBe(200);
    expect(await get(proxy, 'denied.example.com')).toMatchObject({ refused: 'denied' });
    expect(await get(proxy, 'unknown.example.com')).toMatchObject({ refused: 'unresolved' });
  });

  it('is judged anew when its name has another address', async () => {
    const proxy = await open({});
    expect((await get(proxy, 'open.example.com')).status).toBe(200);
    const { 'open.example.com': before = [] } = NAMES;
    onTestFinished(() => void (NAMES['open.example.com'] = before));
    NAMES['open.example.com'] = [PRIVATE];
    expect(await get(proxy, 'open.example.com')).toMatchObject({ refused: 'private_network' });
  });

  it('to another port than the allowed one is refused', async () => {
    const proxy = await open({ allow: [`open.example.com:${webPort}`] });
    expect((await get(proxy, 'open.example.com')).status).toBe(200);
    expect(await get(proxy, 'open.example.com', echoPort)).toMatchObject({ status: 403 });
  });

  it('that is not for a proxy, or names no host, is refused', async () => {
    const proxy = await open({});
    const asked = request({ port: proxy.port, path: '/' }).end();
    const [answer] = (await once(asked, 'response')) as [Answer & NodeJS.ReadableStream];
    expect(answer.statusCode).toBe(400);
    answer.resume();
    expect(await tunnel(proxy, 'a%62:80')).toMatchObject({ status: 400 });
  });
});

describe('traffic', () => {
  it('is counted by host: bytes of tunnels that are open too, and refusals', async () => {
    const proxy = await open({ deny: ['other.example.com'] });
    await tunnel(proxy, `open.example.com:${echoPort}`, 'x'.repeat(1_000));
    await get(proxy, 'other.example.com');
    const taken = proxy.takeTraffic();
    expect(taken?.hosts).toContainEqual({
      host: 'open.example.com',
      ...{ connections: 1, bytesSent: 1_000, bytesReceived: 1_000, refused: 0 },
    });
    expect(taken?.hosts).toContainEqual({
      host: 'other.example.com',
      ...{ connections: 0, bytesSent: 0, bytesReceived: 0 },
      ...{ refused: 1, lastRefusal: 'denied' },
    });
    expect(proxy.takeTraffic()).toBeNull();
  });
});

describe('with a proxy of the session', () => {
  /** The upstream proxy, and what it was asked for. */
  async function openUpstream() {
    const seen: { host: string; login: string }[] = [];
    const upstream = new Server({
      port: 0,
      host: '127.0.0.1',
      prepareRequestFunction({ hostname, username, password }) {
        seen.push({ host: hostname, login: `${username}:${password}` });
        return { requestAuthentication: username !== 'shop', upstreamProxyUrl: null };
      },
    });
    await upstream.listen();
    onTestFinished(() => upstream.close(true));
    return { seen, server: `http://proxy.example.com:${upstream.port}` };
  }

  it('allowed requests go through it, with its credentials', async () => {
    const { seen, server } = await openUpstream();
    const proxy = await open(
      { allow: ['127.0.0.1'], proxy: { server, username: 'shop' } },
      'wörd:@/',
    );
    expect((await get(proxy, '127.0.0.1')).body).toMatch(/^hello from/);
    expect(await tunnel(proxy, `127.0.0.1:${echoPort}`)).toEqual({ status: 200, said: 'ping' });
    const login = 'shop:wörd:@/';
    expect(seen).toEqual([
      { host: '127.0.0.1', login },
      { host: '127.0.0.1', login },
    ]);
  });

  it('refused requests do not reach it, and it is not reached in a private network', async () => {
    const { seen, server } = await openUpstream();
    const proxy = await open({ deny: ['127.0.0.1'], proxy: { server } });
    expect(await get(proxy, '127.0.0.1')).toMatchObject({ status: 403 });
    expect(seen).toEqual([]);
    const inside = server.replace('proxy.', 'inside.');
    for (const host of [inside, server.replace('proxy.', 'own.')]) {
      const other = await open({ proxy: { server: host } });
      expect(await get(other, '127.0.0.1')).toMatchObject({ refused: 'private_network' });
    }
  });
});

test('a connection that is not its browser’s gets no way out, and counts nothing', async () => {
  const asked: { clientPort: number; serverPort: number }[] = [];
  const proxy = await open({}, undefined, async (connection) => {
    asked.push(connection);
    return false;
  });
  expect(await get(proxy, 'open.example.com')).toEqual({
    status: 403,
    refused: undefined,
    body: 'This proxy is of another browser.\n',
  });
  expect((await tunnel(proxy, `open.example.com:${echoPort}`)).status).toBe(403);
  expect(asked.map(({ serverPort }) => serverPort)).toEqual([proxy.port, proxy.port]);
  expect([proxy.asked, proxy.takeTraffic()]).toEqual([[], null]);
  const broken = await open({}, undefined, () => Promise.reject(new Error('/proc is away')));
  expect((await get(broken, 'open.example.com')).status).toBe(403);
});

test('the service is not reached by its own name, whatever that resolves to', async () => {
  const proxy = await open({});
  expect(await get(proxy, 'own.example.com')).toMatchObject({ refused: 'private_network' });
  expect((await tunnel(proxy, `own.example.com:${echoPort}`)).status).toBe(403);
  expect(proxy.asked).toEqual([]);
});

test('the end of the proxy ends its tunnels', async () => {
  const proxy = await open({});
  const socket = connect(proxy.port, '127.0.0.1');
  const place = `open.example.com:${echoPort}`;
  socket.write(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n\r\n`);
  await nextText(socket);
  socket.resume();
  await Promise.all([once(socket, 'close'), proxy[Symbol.asyncDispose]()]);
});
