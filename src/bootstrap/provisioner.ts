import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { createJetStreamLeases } from '#src/messaging/jetstream/jetstream-leases.ts';
import { LEASE_MS, type Leases } from '#src/messaging/leases.ts';
import { createDockerBrowsers } from '#src/provisioner/browsers/docker/docker-browsers.ts';
import { createProcessBrowsers } from '#src/provisioner/browsers/process/process-browsers.ts';
import { createSimulatedBrowsers } from '#src/provisioner/browsers/simulated/simulated-browsers.ts';
import type { Browsers } from '#src/provisioner/browsers/browsers.ts';
import { countStarts } from '../provisioner/count-starts.ts';
import { coresOf, readHost, type HostScope } from '#src/provisioner/pool/host-resources.ts';
import { measureLaunches } from '#src/provisioner/metrics.ts';
import { startProvisioner } from '#src/provisioner/provisioner.ts';
import type { Ground } from './infrastructure.ts';

export async function composeProvisioner(ground: Ground) {
  const { config, connection, serverId, metrics, tail } = ground;
  countStarts(tail, serverId, metrics);
  const leases = await createJetStreamLeases(connection);
  const browsers = await whileAlive(leases, serverId, makeBrowsers(ground));
  const starting = startProvisioner({
    ...ground,
    leases,
    browsers: measureLaunches(browsers, metrics),
    server: { id: serverId, ip: addressOf(config) },
    onShutdown: config.browsers.docker?.onShutdown ?? 'stop',
    ...(await whatItBears(config)),
    onLogReconnect: (listener) => connection.onReconnect(listener),
  });
  return starting.catch(async (error: unknown) => {
    // What they listen to would keep the process from its end.
    await (browsers.leave?.() ?? browsers[Symbol.asyncDispose]());
    throw error;
  });
}

/**
 * A server that is being made ready is not lost: what it ran before it was killed may run still.
 * The provisioner takes over the lease.
 */
async function whileAlive<Result>(
  leases: Leases,
  serverId: string,
  work: Promise<Result>,
): Promise<Result> {
  // One that fails is followed by the next beat, or by the provisioner's own.
  const beat = () => void leases.renew(serverId).catch(() => undefined);
  beat();
  const beating = setInterval(beat, LEASE_MS / 3);
  return work.finally(() => clearInterval(beating));
}

/**
 * What a browser that has only just been opened takes, with room for a page; those that take more
 * are counted when they have.
 */
const BROWSER_BYTES = 256 * 1024 ** 2;

/** Browsers launch one a core; simulated ones cost the machine nothing. */
async function whatItBears({ browsers, pool }: Ground['config']) {
  if (browsers.kind === 'simulated')
    return {
      limits: { ...pool, launchesAtOnce: pool.max, browserBytes: 0 },
      readHost: async () => ({ memoryFreeBytes: null, cpuPressure: null }),
    };
  // Process browsers live within this process's limits, others beside it.
  const scope: HostScope = browsers.kind === 'process' ? 'group' : 'machine';
  return {
    limits: { ...pool, launchesAtOnce: await coresOf({ scope }), browserBytes: BROWSER_BYTES },
    readHost: () => readHost({ scope }),
  };
}

async function makeBrowsers(ground: Ground): Promise<Browsers> {
  const { config, programs, serverId, log, say, ending: signal } = ground;
  const { kind, simulatedLaunchMs, simulatedFailRate, docker } = config.browsers;
  if (docker !== null) return createDockerBrowsers({ ...docker, serverId, log, say, signal });
  if (kind === 'simulated')
    return createSimulatedBrowsers({ launchMs: simulatedLaunchMs, failRate: simulatedFailRate });
  if (programs === null) throw new Error('process browsers without their programs');
  return createProcessBrowsers({ ...programs, stateDir: join(config.dataDir, 'browsers') });
}

/**
 * The address that other machines of ours reach this one by: as the operator names it for browsers
 * (a container's own address says nothing of its host), else as far as it has one.
 */
function addressOf({ browsers: { docker } }: Ground['config']): string {
  if (docker !== null && docker.publish !== null) return docker.publish;
  const addresses = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  const found = addresses.find(({ family, internal }) => family === 'IPv4' && !internal);
  return found?.address ?? '127.0.0.1';
}
