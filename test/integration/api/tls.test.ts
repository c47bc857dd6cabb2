import { once } from 'node:events';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setCertificate, type Incoming } from '#src/roles/api/http/tls.ts';
import { buildServer } from '#src/roles/api/http/server.ts';
import { watchCertificate } from '#src/start/certificate-watcher.ts';
import { startListener } from '#src/roles/gateway/listeners.ts';
import { trustProxies } from '#src/roles/gateway/proxies.ts';
import { makeCertificate, type CertificateFiles } from '#test/support/servers/certificates.ts';
import { eventually } from '#test/support/service/service.ts';

/** Requests through trusted and other proxies, and TLS with configured certificates. */

const log = pino({ level: 'silent' });
const LIMIT = 100;
const PROXY = '10.1.2.3';
const CLIENT = '203.0.113.9';

/** An API without routes: requests to unknown paths are counted by address. */
function anApi(incoming: Incoming) {
  const limits = { requestsPerMinute: LIMIT, concurrentSessions: 1, credits: 1, queueWeight: 1 };
  const allowance = { limit: LIMIT, remaining: 1, resetAtSeconds: 60, isAllowed: true };
  return buildServer({
    routes: () => undefined,
    gatekeeper: {
      authenticate: () => null,
      rateLimiter: { take: async () => allowance, isShared: () => true },
      anonymous: limits,
      operatorToken: null,
      now: () => 0,
    },
    log,
    incoming,
  });
}

describe('the API counts', () => {
  /** The number of requests counted for the client of this one, this one included. */
  function countedBy(api: ReturnType<typeof anApi>) {
    return async (remoteAddress: string, forwarded?: string): Promise<number> => {
      const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
      const reply = await api.inject({ url: '/nothing', remoteAddress, headers });
      return LIMIT - Number(reply.headers['x-ratelimit-remaining']);
    };
  }

  it('the client that a trusted proxy names, behind any number of proxies', async () => {
    const counted = countedBy(anApi({ trustedProxies: ['10.0.0.0/8', '::1'] }));
    expect(await counted(PROXY, CLIENT)).toBe(1);
    expect(await counted(PROXY, `${CLIENT}, 10.9.9.9`)).toBe(2);
    expect(await counted('::1', CLIENT)).toBe(3);
    expect(await counted(`::ffff:${PROXY}`, CLIENT)).toBe(4);
    expect(await counted(CLIENT)).toBe(5);
    // The entries before it are only the client's own claims.
    expect(await counted(PROXY, `198.51.100.1, ${CLIENT}`)).toBe(6);
    expect(await counted(PROXY, '198.51.100.1')).toBe(1);
  });

  it('the connecting address, if it is not a trusted proxy', async () => {
    for (const incoming of [{}, { trustedProxies: ['10.9.0.0/16'] }]) {
      const counted = countedBy(anApi(incoming));
      for (const [index, forged] of ['192.0.2.1', '192.0.2.2', PROXY].entries())
        expect(await counted(CLIENT, forged)).toBe(index + 1);
      expect(await counted(PROXY, CLIENT)).toBe(1);
    }
  });
});

describe('the gateway believes', () => {
  const { clientOf, isSecure } = trustProxies(['10.0.0.0/8', 'fd00::/8', '192.0.2.7']);
  function request(remoteAddress: string, headers: Record<string, string> = {}, more = {}) {
    return { socket: { remoteAddress, ...more }, headers } as unknown as Parameters<
      typeof clientOf
    >[0];
  }

  it.each([
    [PROXY, CLIENT, CLIENT],
    [`::ffff:${PROXY}`, CLIENT, CLIENT],
    ['fd12::1', `1.1.1.1, ${CLIENT}, 192.0.2.7`, CLIENT],
    [PROXY, '', PROXY],
    [CLIENT, '1.1.1.1', CLIENT],
    ['192.0.2.8', '1.1.1.1', '192.0.2.8'],
  ])('at %s with X-Forwarded-For "%s" that the client is %s', (remote, said, client) => {
    expect(clientOf(request(remote, { 'x-forwarded-for': said }))).toBe(client);
  });

  it('that a client uses TLS if it does, or if a trusted proxy says so', () => {
    const said = { 'x-forwarded-proto': 'https' };
    expect(isSecure(request(PROXY, said))).toBe(true);
    expect(isSecure(request(PROXY))).toBe(false);
    expect(isSecure(request(CLIENT, said))).toBe(false);
    expect(isSecure(request(CLIENT, {}, { encrypted: true }))).toBe(true);
    expect(trustProxies([]).isSecure(request(PROXY, said))).toBe(false);
  });
});

let folder = '';
let first: CertificateFiles;
let second: CertificateFiles;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bss-given-'));
  first = await makeCertificate(folder, 'first');
  second = await makeCertificate(folder, 'second');
});
afterAll(() => rm(folder, { recursive: true }));

const ignore = () => undefined;
const HANDLERS = {
  ...{ onRequest: ignore, onUpgrade: ignore, onMalformed: ignore },
  onSocket: () => true,
};

describe('configured certificates', () => {
  /** The name in the certificate that the port presents. */
  async function shownAt(port: number): Promise<string> {
    const socket: TLSSocket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
    try {
      await once(socket, 'secureConnect');
      return String(socket.getPeerCertificate().subject.CN);
    } finally {
      socket.destroy();
    }
  }

  it('are presented by API and gateway, new ones as soon as the files have them', async () => {
    const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
    const put = async ({ cert, key }: CertificateFiles) => {
      await copyFile(cert, files.certFile);
      await copyFile(key, files.keyFile);
    };
    await put(first);
    await using stack = new AsyncDisposableStack();
    const given = stack.use(await watchCertificate(files, log, 20));
    const api = anApi({ certificate: given.now });
    await api.listen({ host: '127.0.0.1', port: 0 });
    stack.defer(() => api.close());
    const place = { host: '127.0.0.1', port: 0 };
    const gateway = stack.use(await startListener({ ...place, ...given.now }, HANDLERS, 10));
    given.onChange((changed) => setCertificate(api, changed));
    given.onChange((changed) => gateway.setCertificate(changed));
    const ports = [(api.server.address() as AddressInfo).port, gateway.address.port];
    for (const port of ports) expect(await shownAt(port)).toBe('first');

    // Half of a pair, and a file that is no certificate, are not used.
    await copyFile(second.cert, files.certFile);
    await writeFile(files.keyFile, 'not written whole');
    for (const port of ports) expect(await shownAt(port)).toBe('first');
    await put(second);
    await eventually(async () => (await shownAt(ports[0] ?? 0)) === 'second', 'it is shown');
    for (const port of ports) expect(await shownAt(port)).toBe('second');
    expect(given.now.cert).toBe(await readFile(second.cert, 'utf8'));
  });

  it('are accepted by clients that trust their authority', async () => {
    const [key, cert] = [await readFile(first.key, 'utf8'), await readFile(first.cert, 'utf8')];
    const api = anApi({ certificate: { key, cert } });
    await api.listen({ host: '127.0.0.1', port: 0 });
    const { port } = api.server.address() as AddressInfo;
    const socket = connect({ port, host: '127.0.0.1', ca: cert });
    await once(socket, 'secureConnect');
    socket.write('GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    let said = '';
    for await (const chunk of socket) said += String(chunk);
    expect(said).toMatch(/^HTTP\/1\.1 404 [^]*x-ratelimit-limit: 100[^]*NOT_FOUND/);
    await api.close();
  });
});

describe.concurrent('a connection to the gateway with TLS', () => {
  /** How often a connection was found malformed until it was closed. */
  async function malformedBy(bytes: string): Promise<number> {
    const [key, cert] = [await readFile(first.key, 'utf8'), await readFile(first.cert, 'utf8')];
    let count = 0;
    const onMalformed = (socket: Duplex) => {
      count += 1;
      socket.destroy();
    };
    const place = { host: '127.0.0.1', port: 0, key, cert };
    await using listener = await startListener(place, { ...HANDLERS, onMalformed }, 10);
    const { port } = listener.address;
    const socket: TLSSocket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
    const closed = once(socket, 'close');
    await once(socket, 'secureConnect');
    if (bytes !== '') socket.write(bytes);
    await closed;
    return count;
  }

  it('is closed without an answer, if nothing arrives', async ({ expect }) => {
    expect(await malformedBy('')).toBe(0);
  });

  it.for(['no HTTP\r\n\r\n', 'GET / HT'])('is answered after %j', async (bytes, { expect }) => {
    expect(await malformedBy(bytes)).toBe(1);
  });
});
