import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, isIP, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as secure, type TLSSocket } from 'node:tls';
import type { Config } from '#src/kernel/config/config.ts';

/** The ends of certificates in ms since the epoch, by name; null: it cannot be read now. */
export type CertificateEnds = Record<string, number | null>;

/** Time to connect to a server and to get its certificate. */
const SERVED_MS = 2_000;
const NATS_PORT = 4222;
const REDIS_PORT = 6379;

type Addresses = { natsUrl: string; redisUrl: string | null };

/**
 * The ends of all certificates that a process with this configuration uses: its own of incoming and
 * outgoing connections (`tls`, `gateway`, `nats_client`, `redis_client`), the authorities that it
 * trusts (`nats_ca`, `redis_ca`), and what the servers show (`nats_server`, `redis_server`; the
 * first to end of several servers). Of several authorities in a file the last to end counts: the
 * one before a new authority may end. Never throws.
 */
export async function readCertificateEnds(
  config: Config,
  { natsUrl, redisUrl }: Addresses,
): Promise<CertificateEnds> {
  const { incoming, nats, redisTls, roles, dataDir } = config;
  const own =
    incoming.certificate?.certFile ??
    (roles.includes('gateway') ? join(dataDir, 'gateway-cert.pem') : null);
  const found: [string, Promise<number | null> | null][] = [
    [incoming.certificate === null ? 'gateway' : 'tls', ofFile(own, Math.min)],
    ['nats_client', ofFile(nats.tls?.certFile, Math.min)],
    ['nats_ca', ofFile(nats.tls?.caFile, Math.max)],
    ['nats_server', served(natsUrl, 'tls:', NATS_PORT, greeted)],
    ['redis_client', ofFile(redisTls?.certFile, Math.min)],
    ['redis_ca', ofFile(redisTls?.caFile, Math.max)],
    ['redis_server', served(redisUrl ?? '', 'rediss:', REDIS_PORT)],
  ];
  const used = found.flatMap(([name, reading]) => (reading === null ? [] : [[name, reading]]));
  return Object.fromEntries(
    await Promise.all(used.map(async ([name, reading]) => [name, await reading] as const)),
  ) as CertificateEnds;
}

/** @returns null: there is no such file in the configuration */
function ofFile(
  path: string | null | undefined,
  choose: (...ends: number[]) => number,
): Promise<number | null> | null {
  if (path === null || path === undefined) return null;
  const read = async () => {
    const text = await readFile(path, 'utf8');
    const pems = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
    const ends = pems.map((pem) => new X509Certificate(pem).validToDate.getTime());
    return ends.length === 0 ? null : choose(...ends);
  };
  return read().catch(() => null);
}

/** @returns null: no address asks for TLS */
function served(
  addresses: string,
  protocol: string,
  defaultPort: number,
  prepare: (socket: Socket) => Promise<void> = async () => undefined,
): Promise<number | null> | null {
  const urls = addresses.split(',').map((one) => URL.parse(one.trim()));
  const secured = urls.filter((url) => url?.protocol === protocol) as URL[];
  if (secured.length === 0) return null;
  const ends = secured.map((url) =>
    endOf(url.hostname, Number(url.port || defaultPort), prepare).catch(() => null),
  );
  return Promise.all(ends).then((all) => {
    const known = all.filter((end) => end !== null);
    return known.length === 0 ? null : Math.min(...known);
  });
}

/** The end of what a server shows, whether it is trusted or not. @throws Error without an answer */
async function endOf(
  host: string,
  port: number,
  prepare: (socket: Socket) => Promise<void>,
): Promise<number | null> {
  const socket = connect({ host, port });
  let secured: TLSSocket | null = null;
  const timer = setTimeout(() => socket.destroy(new Error('no certificate in time')), SERVED_MS);
  try {
    await once(socket, 'connect');
    await prepare(socket);
    // Its end is read; nothing is sent to it.
    const name = isIP(host) === 0 ? { servername: host } : {};
    secured = secure({ socket, ...name, rejectUnauthorized: false });
    await once(secured, 'secureConnect');
    const { valid_to: end } = secured.getPeerCertificate();
    return end === undefined ? null : Date.parse(end);
  } finally {
    clearTimeout(timer);
    secured?.destroy();
    socket.destroy();
  }
}

/** nats-server introduces itself before TLS begins. */
async function greeted(socket: Socket): Promise<void> {
  let text = '';
  while (!text.includes('\r\n')) {
    await once(socket, 'readable');
    text += String(socket.read() ?? '');
  }
}
