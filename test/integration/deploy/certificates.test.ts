import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { connect, createServer } from 'node:tls';
import { generate } from 'selfsigned';
import { beforeEach, afterEach, describe, expect, it } from 'vitest';
import type { Config } from '#src/kernel/config/config.ts';
import { readCertificateEnds } from '#src/start/certificate-facts.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { startNats } from '#test/support/servers/real-nats.ts';

const script = new URL('../../../deploy/make-certificates.mjs', import.meta.url).href;
const { keepInside, keepEdge } = (await import(script)) as {
  keepInside(folder: string, names: string[], now?: Date): Promise<string[]>;
  keepEdge(folder: string, name: string, now?: Date): Promise<string[]>;
};

const DAY_MS = 24 * 60 * 60_000;
const NAMES = ['nats', 'redis', 'localhost'];
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS);

let folder: Awaited<ReturnType<typeof scratchDir>>;
beforeEach(async () => {
  folder = await scratchDir();
});
afterEach(() => folder[Symbol.asyncDispose]());

const read = (name: string) => readFile(join(folder.path, name), 'utf8');
const keep = (now?: Date) => keepInside(folder.path, NAMES, now);
/** What up.sh does once its restarts and reloads are through. */
const done = (step: 'trust' | 'inside' | 'edge') => rm(join(folder.path, `pending-${step}`));
async function daysLeft(name: string): Promise<number> {
  return (new X509Certificate(await read(name)).validToDate.getTime() - Date.now()) / DAY_MS;
}

/** The server's and the trusted certificates, as running parts have loaded them. */
async function loaded() {
  return {
    server: { key: await read('inside.key'), cert: await read('inside.pem') },
    trusted: await read('inside-ca.pem').catch(() => read('inside.pem')),
  };
}

/** Resolves with whether a client with these trusted certificates accepts this server. */
async function accepts(
  { trusted }: { trusted: string },
  { server: pair }: { server: { key: string; cert: string } },
): Promise<string> {
  const server = createServer(pair).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1', servername: 'redis', ca: trusted });
  const outcome = await Promise.race([
    once(socket, 'secureConnect').then(() => 'accepted'),
    once(socket, 'error').then(([error]) => String((error as { code?: string }).code)),
  ]).catch((error: unknown) => String((error as { code?: string }).code));
  socket.destroy();
  server.close();
  return outcome;
}

describe('the certificate of NATS and Redis', () => {
  it('is signed by an authority whose key it does not have', async () => {
    expect(await keep()).toEqual(['inside']);
    const parts = await loaded();
    expect(await accepts(parts, parts)).toBe('accepted');
    expect(new X509Certificate(parts.server.cert).ca).toBe(false);
    expect(await read('inside-ca.key')).not.toBe(parts.server.key);
    expect((await stat(join(folder.path, 'inside-ca.key'))).mode & 0o777).toBe(0o400);
    await done('inside');
    expect(await keep()).toEqual([]);
    expect(await loaded()).toEqual(parts);
  });

  it('is renewed within 60 days of its end, and parts that run accept the new one', async () => {
    await keep(inDays(-340));
    await done('inside');
    const before = await loaded();
    expect(await daysLeft('inside.pem')).toBeLessThan(60);
    expect(await keep()).toEqual(['inside']);
    const after = await loaded();
    expect(await daysLeft('inside.pem')).toBeGreaterThan(390);
    expect(after.trusted).toBe(before.trusted);
    expect(await accepts(before, after)).toBe('accepted');
  });

  it.each([
    ['that was its own authority, as earlier versions made it', selfSigned],
    ['of an authority that ends', oldAuthority],
  ])('%s is replaced in two steps, each accepted by parts of the step before', async (_, make) => {
    await make();
    const old = await loaded();
    expect(await keep()).toEqual(['trust']);
    await done('trust');
    const trusting = await loaded();
    expect(trusting.server).toEqual(old.server);
    expect(await accepts(trusting, old)).toBe('accepted');

    expect(await keep()).toEqual(['inside']);
    const renewed = await loaded();
    expect(await accepts(trusting, renewed)).toBe('accepted');
    expect(await accepts(renewed, old)).toBe('accepted');
    expect(await accepts(old, renewed)).not.toBe('accepted');

    await done('inside');
    expect(await keep()).toEqual([]);
    const last = await loaded();
    expect(await accepts(last, renewed)).toBe('accepted');
    expect(await accepts(last, old)).not.toBe('accepted');
  });

  it('signs with a new authority only after all parts were told to trust it, however often run', async () => {
    await oldAuthority();
    const old = await loaded();
    expect(await keep()).toEqual(['trust']);
    const trusting = await loaded();
    // A run that ended before its restarts were through, or `up.sh secrets`.
    expect(await keep()).toEqual(['trust']);
    expect(await loaded()).toEqual(trusting);
    expect(trusting.server).toEqual(old.server);
  });

  it('keeps the old authority until NATS and Redis have read their new certificate', async () => {
    await oldAuthority();
    const old = await loaded();
    await keep();
    await done('trust');
    expect(await keep()).toEqual(['inside']);
    const renewed = await loaded();
    // A run that ended before NATS or Redis had read it.
    expect(await keep()).toEqual(['inside']);
    expect(await loaded()).toEqual(renewed);
    expect(await accepts(renewed, old)).toBe('accepted');
    await done('inside');
    expect(await keep()).toEqual([]);
    expect(await accepts(await loaded(), old)).not.toBe('accepted');
  });

  it('has a new authority trusted also where it has to be made anew at once', async () => {
    await keep();
    await done('inside');
    const old = await loaded();
    for (const name of ['inside-ca.key', 'inside.pem']) await rm(join(folder.path, name));
    expect(await keep()).toEqual(['trust', 'inside']);
    const renewed = await loaded();
    expect([await accepts(renewed, old), await accepts(renewed, renewed)]).toEqual([
      'accepted',
      'accepted',
    ]);
    await done('trust');
    expect(await keep()).toEqual(['inside']);
  });

  it('is read again by nats-server on SIGHUP, which no connection notices', async () => {
    await keep(inDays(-340));
    const [cert, key, caFile] = ['inside.pem', 'inside.key', 'inside-ca.pem'].map((name) =>
      join(folder.path, name),
    );
    await using nats = await startNats(`tls { cert_file: "${cert}", key_file: "${key}" }`);
    const address = `tls://localhost:${nats.port}`;
    const config = { roles: [], incoming: {}, nats: { tls: null }, redisTls: null };
    const servedDays = async () => {
      const options = { natsUrl: address, redisUrl: null };
      const { nats_server: end } = await readCertificateEnds(config as unknown as Config, options);
      return ((end ?? 0) - Date.now()) / DAY_MS;
    };
    expect(await servedDays()).toBeLessThan(60);
    const statuses: string[] = [];
    await using connection = await connectJetStream({
      url: address,
      tls: { caFile: caFile as string },
      onStatus: (status) => statuses.push(status),
    });
    await keep();
    nats.reload();
    await expect.poll(servedDays).toBeGreaterThan(390);
    expect([connection.isConnected(), statuses]).toEqual([true, ['connected']]);
  });

  it('is made anew for a name that it lacks, and where its key is missing', async () => {
    await keep();
    await done('inside');
    expect(await keepInside(folder.path, [...NAMES, 'nats-4'])).toEqual(['inside']);
    await done('inside');
    await rm(join(folder.path, 'inside.key'));
    expect(await keep()).toEqual(['inside']);
  });
});

describe('the certificate that clients see', () => {
  it('is renewed within 60 days of its end', async () => {
    expect(await keepEdge(folder.path, 'example.org', inDays(-340))).toEqual(['edge']);
    // Not told yet.
    expect(await keepEdge(folder.path, 'example.org', inDays(-340))).toEqual(['edge']);
    await done('edge');
    expect(await keepEdge(folder.path, 'example.org', inDays(-340))).toEqual([]);
    expect(await keepEdge(folder.path, 'example.org')).toEqual(['edge']);
    expect(await daysLeft('edge.pem')).toBeGreaterThan(390);
  });

  it('is renewed without its mark, as earlier versions made it', async () => {
    await writePair('edge', 30, 'example.org', true, { forDays: 398, hasUsages: true });
    expect(await keepEdge(folder.path, 'example.org')).toEqual(['edge']);
    expect(await daysLeft('edge.pem')).toBeGreaterThan(390);
  });

  it.each([
    ['ends soon', false, 90],
    ['signs itself for as long as one of ours', true, 398],
  ])('is left alone if somebody else made it, and it %s', async (_, signsItself, forDays) => {
    await writePair('edge', 5, 'example.org', signsItself, { forDays });
    const theirs = await read('edge.pem');
    expect(await keepEdge(folder.path, 'example.org')).toEqual([]);
    expect(await read('edge.pem')).toBe(theirs);
  });

  it.each([
    ['their key is missing', () => rm(join(folder.path, 'edge.key'))],
    ['their certificate is missing', () => rm(join(folder.path, 'edge.pem'))],
    ['their certificate is no PEM', () => writeFile(join(folder.path, 'edge.pem'), 'DER')],
    ['their key is no PEM', () => writeFile(join(folder.path, 'edge.key'), 'DER')],
    ['the key is of another certificate', () => copyOver('edge.key')],
    ['their key is beside a certificate of ours', () => copyOver('edge.pem')],
  ])('is not overwritten where %s: the files are named', async (_, change) => {
    await writePair('edge', 100, 'example.org', false);
    await change();
    const before = await edgeFiles();
    await expect(keepEdge(folder.path, 'example.org')).rejects.toThrow(/edge\.pem.*edge\.key/);
    expect(await edgeFiles()).toEqual(before);
  });
});

/** Replaces a file by one that `keepEdge` makes. */
async function copyOver(name: string): Promise<void> {
  await using ours = await scratchDir();
  await keepEdge(ours.path, 'example.org');
  await copyFile(join(ours.path, name), join(folder.path, name));
}

/** The contents of both files of the edge; null: missing. */
function edgeFiles(): Promise<(string | null)[]> {
  return Promise.all(['edge.pem', 'edge.key'].map((name) => read(name).catch(() => null)));
}

/** A server's certificate that signs itself and is trusted as an authority. */
async function selfSigned(): Promise<void> {
  await writePair('inside', 30, 'nats', true);
}

/** An authority with 250 days left, and a server's certificate with 27. */
async function oldAuthority(): Promise<void> {
  await keep(inDays(-3_400));
  await done('inside');
  expect(await keep(inDays(-370))).toEqual(['inside']);
  await done('inside');
}

async function writePair(
  name: string,
  days: number,
  host: string,
  isAuthority: boolean,
  { forDays = days + 1, hasUsages = false } = {},
) {
  const notAfterDate = inDays(days);
  const made = await generate([{ name: 'commonName', value: host }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: new Date(notAfterDate.getTime() - forDays * DAY_MS),
    notAfterDate,
    extensions: [
      { name: 'basicConstraints', cA: isAuthority, critical: true },
      { name: 'keyUsage', digitalSignature: true, keyCertSign: isAuthority, critical: true },
      ...(hasUsages ? [{ name: 'extKeyUsage' as const, serverAuth: true, clientAuth: true }] : []),
      { name: 'subjectAltName', altNames: NAMES.map((value) => ({ type: 2, value })) },
    ],
  });
  await writeFile(join(folder.path, `${name}.key`), made.private);
  await writeFile(join(folder.path, `${name}.pem`), made.cert);
}
