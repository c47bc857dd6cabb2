import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificate } from './certificates.ts';
import { natsUsers, passwordOf, type NatsUser } from './nats-roles.ts';
import { startNats, type RealNats } from './real-nats.ts';
import { freePorts } from './ports.ts';

/** Three real nats-servers, a cluster by deploy/nats-cluster.conf, with TLS, routes and users. */
export type NatsCluster = AsyncDisposable & {
  /** By the name that `cluster.leader` has. */
  servers: ReadonlyMap<string, RealNats>;
  urlOf(user: NatsUser): string;
  /** The authority of their certificates. */
  caFile: string;
};

const shipped = (name: string) =>
  readFileSync(new URL(`../../../deploy/${name}`, import.meta.url), 'utf8');

/** @param change of the configuration of the server at this index, from 0 */
export async function startNatsCluster(
  change: (config: string, index: number) => string = (config) => config,
): Promise<NatsCluster> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'nats-cluster-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const { cert, key } = await makeCertificate(folder, 'nats');
  for (const user of natsUsers)
    process.env[`NATS_${user.toUpperCase()}_PASSWORD`] = passwordOf(user);
  const names = ['nats-1', 'nats-2', 'nats-3'];
  const ports = await freePorts(3);
  const routes = ports.map((port) => `nats-route://route:between-us@127.0.0.1:${port}`);
  const users = shipped('nats.conf').replace(/^ *store_dir:.*$/m, '');
  const starting = names.map(async (name, index) => {
    const config = shipped('nats-cluster.conf')
      // A function, because `$` has a meaning in a replacement string.
      .replace('include ./nats.conf', () => users)
      .replace(/^http: .*$/m, '')
      .replace('0.0.0.0:6222', `127.0.0.1:${ports[index]}`)
      .replaceAll('$NATS_NAME', name)
      .replaceAll('$NATS_ROUTES', `[${routes.join(', ')}]`)
      .replaceAll('$NATS_ROUTE_PASSWORD', 'between-us')
      .replaceAll('$NATS_CERT', `"${cert}"`)
      .replaceAll('$NATS_KEY', `"${key}"`)
      .replaceAll('$NATS_CA', `"${cert}"`);
    return [name, stack.use(await startNats(change(config, index)))] as const;
  });
  const servers = new Map(await Promise.all(starting));
  const all = stack.move();
  return {
    servers,
    urlOf: (user) =>
      [...servers.values()]
        .map(({ port }) => `tls://${user}:${passwordOf(user)}@127.0.0.1:${port}`)
        .join(','),
    caFile: cert,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
