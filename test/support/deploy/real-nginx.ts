import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificate } from '#test/support/servers/certificates.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { startServer } from '#test/support/servers/real-server.ts';

const CONFIG = new URL('../../../deploy/nginx.conf', import.meta.url);

export type RealNginx = AsyncDisposable & {
  /** `https://127.0.0.1:port`. */
  url: string;
  /** The same without TLS, for clients that trust no authority of a test. */
  plainUrl: string;
  port: number;
  /** Its certificate, for clients that are to trust it. */
  ca: string;
  /** Where it would keep what it buffers. */
  folder: string;
};

export type NginxOptions = {
  program: string;
  /** Ports on loopback of the processes that it leads to. */
  api: readonly number[];
  gateway: readonly number[];
  /** Changes of the text, to shorten a time: each has to be in it. */
  changes?: readonly [from: string, to: string][];
};

/**
 * A real nginx with deploy/nginx.conf, in which only places are other ones: addresses, ports and
 * files. Where it asks Docker's name server for the processes, it is given them.
 */
export async function startNginx({
  program,
  api,
  gateway,
  changes = [],
}: NginxOptions): Promise<RealNginx> {
  const folder = await mkdtemp(join(tmpdir(), 'real-nginx-'));
  const [port = 0, plain = 0] = await freePorts(2);
  const { cert, key } = await makeCertificate(folder, 'edge');
  const group = (name: string, ports: readonly number[]) =>
    `upstream ${name} { ${ports.map((one) => `server 127.0.0.1:${one} max_fails=0;`).join(' ')} }`;
  const places: [string, string][] = [
    ['/tmp/', `${folder}/`],
    ['http {', `http {\n${group('apis', api)}\n${group('gateways', gateway)}`],
    ['http://api:8080', 'http://apis'],
    ['http://gateway:8081', 'http://gateways'],
    ['resolver 127.0.0.11 valid=1s ipv6=off;', ''],
    ['listen 8443 ssl http2;', `listen 127.0.0.1:${port} ssl http2; listen 127.0.0.1:${plain};`],
    ['/run/secrets/edge_pem', cert],
    ['/run/secrets/edge_key', key],
    ['worker_processes auto;', 'daemon off; master_process off;'],
    ['error_log /dev/stderr', 'error_log stderr'],
  ];
  let text = await readFile(CONFIG, 'utf8');
  for (const [from, to] of [...changes, ...places]) {
    if (!text.includes(from)) throw new Error(`deploy/nginx.conf has no ${from}`);
    text = text.replaceAll(from, to);
  }
  const config = join(folder, 'nginx.conf');
  await writeFile(config, text);
  const server = await startServer({
    program,
    args: ['-p', folder, '-c', config, '-e', 'stderr'],
    answers: () => accepts(port),
  });
  return {
    url: `https://127.0.0.1:${port}`,
    plainUrl: `http://127.0.0.1:${plain}`,
    port,
    ca: await readFile(cert, 'utf8'),
    folder,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
