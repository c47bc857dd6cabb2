import { createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { inspect } from 'node:util';
import {
  createServer as createTlsServer,
  getCACertificates,
  setDefaultCACertificates,
  type TLSSocket,
} from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  addressesOf,
  connectToBrowser,
  createLinkKeys,
  linkKeyText,
} from '#src/browsers/link/browser-link.ts';
import { ensureCertificate } from '#src/roles/gateway/certificate.ts';
import { scratchDir } from '#test/support/scratch.ts';

const keys = createLinkKeys(Buffer.alloc(32, 1));

describe('the key of a workload', () => {
  test('is the same at every use, and another for each workload and master key', () => {
    expect(keys('wl_1').equals(keys('wl_1'))).toBe(true);
    expect(keys('wl_1').equals(keys('wl_2'))).toBe(false);
    expect(createLinkKeys(Buffer.alloc(32, 2))('wl_1').equals(keys('wl_1'))).toBe(false);
    expect(linkKeyText(keys('wl_1'))).toMatch(/^[0-9a-f]{64}$/);
    expect(() => createLinkKeys(Buffer.alloc(15))).toThrow(RangeError);
  });

  test('is not in what is printed or serialized of an address', () => {
    const address = { host: '127.0.0.1', port: 1, linkKey: keys('wl_1') };
    const key = keys('wl_1').export();
    for (const text of [JSON.stringify(address), inspect(address, { depth: 9 })])
      for (const form of ['hex', 'base64', 'latin1'] as const)
        expect(text).not.toContain(key.toString(form));
  });

  test('goes with the addresses of a workload that was recorded with a link, and no other', () => {
    const recorded = {
      workloadId: 'wl_1',
      cdp: { host: '10.0.0.1', port: 9223, path: '/devtools/browser/x' },
      vnc: { host: '10.0.0.1', port: 5900 },
    };
    expect(addressesOf(recorded, keys)).toEqual({ cdp: recorded.cdp, vnc: recorded.vnc });
    const { cdp, vnc } = addressesOf({ ...recorded, link: 'tls-psk' }, keys);
    expect(cdp.linkKey?.equals(keys('wl_1'))).toBe(true);
    expect(vnc.linkKey?.equals(keys('wl_1'))).toBe(true);
    expect(cdp.path).toBe('/devtools/browser/x');
  });
});

describe('a connection to a browser', () => {
  test('carries bytes both ways, with forward secrecy, where both sides have the key', async () => {
    const seen: TLSSocket[] = [];
    const port = await listen(linkServer(keys('wl_1'), seen));
    const ready = Promise.withResolvers<void>();
    const linkKey = keys('wl_1');
    const socket = connectToBrowser(
      { host: '127.0.0.1', port, linkKey },
      { onReady: ready.resolve },
    ) as TLSSocket;
    // Written before the handshake: sent after it.
    socket.write('early');
    await ready.promise;
    expect((await once(socket, 'data'))[0]).toEqual(Buffer.from('early'));
    expect(socket.getProtocol()).toBe('TLSv1.3');
    // An exchange of ephemeral keys beside the key itself.
    expect(socket.getEphemeralKeyInfo()).toHaveProperty('name');
    expect([socket.bytesRead, socket.bytesWritten]).toEqual([5, 5]);
    seen[0]?.end();
    await once(socket, 'end');
    socket.destroy();
  });

  test('does not come about with a key of another workload', async () => {
    const seen: TLSSocket[] = [];
    const port = await listen(linkServer(keys('wl_1'), seen));
    await expect(opened(port, keys('wl_2'))).rejects.toThrow();
    expect(seen).toEqual([]);
  });

  test('does not come about with a server that shows a trusted certificate instead', async () => {
    await using folder = await scratchDir();
    const certificate = await ensureCertificate(folder.path);
    const before = getCACertificates();
    setDefaultCACertificates([...before, certificate.cert]);
    onTestFinished(() => setDefaultCACertificates(before));
    const port = await listen(createTlsServer(certificate));
    await expect(opened(port, keys('wl_1'))).rejects.toThrow('did not prove its key');
  });

  test('does not come about with a server that speaks no TLS', async () => {
    const greet = (socket: Socket) => socket.on('error', () => {}).write('RFB 003.008\n');
    const port = await listen(createServer(greet));
    await expect(opened(port, keys('wl_1'))).rejects.toThrow();
  });

  test.each([
    ['with a link', createSecretKey(randomBytes(32))],
    ['without a link', undefined],
  ])('fails by its error where nothing listens, %s', async (_, linkKey) => {
    const server = createServer();
    const port = await listen(server);
    server.close();
    await expect(opened(port, linkKey)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test.each([
    ['with a link', createSecretKey(randomBytes(32))],
    ['without a link', undefined],
  ])('closes when its signal aborts, %s', async (_, linkKey) => {
    const port = await listen(createServer((socket) => socket.on('error', () => {})));
    const stop = new AbortController();
    const socket = connectToBrowser({ host: '127.0.0.1', port, linkKey }, { signal: stop.signal });
    const failed = once(socket, 'error');
    stop.abort();
    expect((await failed)[0]).toMatchObject({ name: 'AbortError' });
    expect(socket.destroyed).toBe(true);
  });
});

/** Echoes; `seen` gets the connections that have proved the key. */
function linkServer(key: KeyObject, seen: TLSSocket[]): Server {
  const options = {
    pskCallback: () => key.export(),
    ciphers: 'TLS_AES_128_GCM_SHA256',
    minVersion: 'TLSv1.3',
  } as const;
  return createTlsServer(options, (socket) => {
    seen.push(socket);
    socket.on('error', () => {}).pipe(socket);
  });
}

async function listen(server: Server): Promise<number> {
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Resolves once bytes can flow. */
async function opened(port: number, linkKey: KeyObject | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connectToBrowser({ host: '127.0.0.1', port, linkKey }, { onReady: resolve });
  socket.on('error', reject).on('close', () => reject(new Error('closed')));
  await promise.finally(() => socket.destroy());
}
