import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { startNatsCluster, type NatsCluster } from '#test/support/servers/nats-cluster.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { startRedis, type RealRedis } from '#test/support/servers/real-redis.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';
import { cpuOf } from '../run-apart.ts';

const SERVERS_APART = fileURLToPath(new URL('servers-apart.ts', import.meta.url));
const PROCESSES_OF_SERVERS = 5;

/** The processes of a fleet, by what they are; the clients are this process. */
export type Part = 'clients' | 'nats' | 'redis' | 'api' | 'projector' | 'timekeeper' | 'servers';

export type Fleet = AsyncDisposable & {
  cluster: NatsCluster;
  redis: RealRedis;
  apis: readonly RunningService[];
  /** Where projectors tell their metrics. */
  metricsUrls: readonly string[];
  pids: ReadonlyMap<Part, readonly number[]>;
};

export type FleetSize = {
  /** Processes of each role but provisioners. */
  each: number;
  servers: number;
  idlePerServer: number;
};

/**
 * A service of many processes on three NATS nodes, whose streams have three replicas, and one
 * Redis; its browsers are simulated.
 */
export async function startFleet(size: FleetSize, tiers: string): Promise<Fleet> {
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(await startNatsCluster());
  const redis = stack.use(await startRedis());
  const env = {
    NATS_URL: cluster.urlOf('service'),
    NATS_CA_FILE: cluster.caFile,
    REDIS_URL: redis.url,
    MASTER_KEY: 'the-same-in-every-process-of-the-fleet',
    TIERS: tiers,
    // startService waits for a line of this level.
    LOG_LEVEL: 'info',
    QUEUE_MAX: '10000',
    // A create is measured however long it takes.
    CREATE_WAIT: '2m',
  };
  const pids = new Map<Part, number[]>([
    ['clients', [process.pid]],
    ['nats', [...cluster.servers.values()].map(({ pid }) => pid())],
    ['redis', [redis.pid()]],
  ]);
  const note = (part: Part, pid: number) => pids.set(part, [...(pids.get(part) ?? []), pid]);
  const apis: RunningService[] = [];
  const metricsUrls: string[] = [];
  async function startRole(role: 'api' | 'projector' | 'timekeeper', at: number): Promise<void> {
    const [port = 0] = await freePorts(1);
    const roles = role === 'api' && at === 0 ? 'api,gateway' : role;
    const given = { ...env, ROLES: roles, METRICS_PORT: `${port}` };
    const service = stack.use(await startService(given));
    note(role, service.pid);
    if (role === 'api') apis.push(service);
    if (role === 'projector') metricsUrls.push(`http://127.0.0.1:${port}/metrics`);
  }
  // The API makes the streams, and is ready once a projector has made the read models.
  await Promise.all([startRole('api', 0), startRole('projector', 0)]);
  await startRole('timekeeper', 0);
  for (const role of ['api', 'projector', 'timekeeper'] as const)
    for (let at = 1; at < size.each; at += 1) await startRole(role, at);
  const perProcess = Math.ceil(size.servers / PROCESSES_OF_SERVERS);
  for (let at = 0; at < PROCESSES_OF_SERVERS; at += 1)
    note('servers', await startServers(stack, perProcess, { ...env, ...poolOf(size) }));
  const all = stack.move();
  const dispose = () => all.disposeAsync();
  return { cluster, redis, apis, metricsUrls, pids, [Symbol.asyncDispose]: dispose };
}

function poolOf({ idlePerServer }: FleetSize) {
  return {
    ROLES: 'provisioner',
    BROWSERS: 'simulated',
    SIMULATED_LAUNCH_MS: '20ms',
    POOL_MIN_IDLE: `${idlePerServer}`,
    POOL_MAX_IDLE: `${idlePerServer}`,
    POOL_MAX: `${4 * idlePerServer}`,
  };
}

/** @returns the process's id */
async function startServers(
  stack: AsyncDisposableStack,
  count: number,
  env: Record<string, string>,
): Promise<number> {
  const child = spawn(process.execPath, [SERVERS_APART, `${count}`], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = once(child, 'exit');
  stack.defer(async () => {
    child.kill('SIGTERM');
    await gone;
  });
  const failed = gone.then(() => Promise.reject(new Error('a process of servers has ended')));
  await Promise.race([once(child.stdout, 'data'), failed]);
  failed.catch(() => undefined);
  return child.pid ?? 0;
}

/** Processor seconds of each part so far. */
export async function cpuByPart({ pids }: Fleet): Promise<Map<Part, number>> {
  const all = [...pids].map(async ([part, own]): Promise<[Part, number]> => {
    const seconds = await Promise.all(own.map(cpuOf));
    return [part, seconds.reduce((sum, one) => sum + one, 0)];
  });
  return new Map(await Promise.all(all));
}

/** Resident memory of a part, in MiB. */
export async function memoryOf({ pids }: Fleet, part: Part): Promise<number> {
  const texts = await Promise.all(
    (pids.get(part) ?? []).map((pid) => readFile(`/proc/${pid}/status`, 'utf8')),
  );
  const kilobytes = texts.map((text) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0));
  return kilobytes.reduce((sum, one) => sum + one, 0) / 1024;
}
