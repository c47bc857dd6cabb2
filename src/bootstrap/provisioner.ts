import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { createJetStreamLeases } from '#src/messaging/jetstream/jetstream-leases.ts';
import { createJetStreamWorkQueues } from '#src/messaging/jetstream/jetstream-work-queue.ts';
import { LEASE_MS, type Leases } from '#src/messaging/leases.ts';
import { createDockerBrowsers } from '#src/provisioner/browsers/docker/docker-browsers.ts';
import { createProcessBrowsers } from '#src/provisioner/browsers/process/process-browsers.ts';
import { createSimulatedBrowsers } from '#src/provisioner/browsers/simulated/simulated-browsers.ts';
import type { Browsers } from '#src/provisioner/browsers/browsers.ts';
import { coresOf, readHost, type HostScope } from '#src/provisioner/pool/host-resources.ts';
import { countStarts, measureLaunches, watchAge } from '#src/provisioner/metrics.ts';
import { startProvisioner } from '#src/provisioner/provisioner.ts';
import type { Infrastructure } from './infrastructure.ts';

export async function composeProvisioner(infrastructure: Infrastructure) {
  const { config, connection, serverId, metrics, readers, sessionEvents } = infrastructure;
  countStarts(sessionEvents, serverId, metrics);
  const leases = await createJetStreamLeases(connection);
  const browsers = await whileAlive(leases, serverId, makeBrowsers(infrastructure));
  watchAge(browsers, metrics);
  const starting = startProvisioner({
    ...infrastructure,
    openWorkQueue: createJetStreamWorkQueues(connection, { onOpened: readers.add }),
    leases,
    browsers: measureLaunches(browsers, metrics),
    server: { id: serverId, ip: advertisedAddress(config) },
    onShutdown: config.browsers.docker?.onShutdown ?? 'stop',
    ...(await hostLimits(config)),
    onLogReconnect: (listener) => connection.onReconnect(listener),
  });
  return starting.catch(async (error: unknown) => {
    // Open handles of the browsers would keep the process from exiting.
    await (browsers.leave?.() ?? browsers[Symbol.asyncDispose]());
    throw error;
  });
}

/**
 * Renews the server's lease while it starts, so that it does not count as lost: its browsers of
 * before a crash may still run. The provisioner then takes over the lease.
 */
async function whileAlive<Result>(
  leases: Leases,
  serverId: string,
  work: Promise<Result>,
): Promise<Result> {
  // A failed renewal is made up for by the next one.
  const beat = () => void leases.renew(serverId).catch(() => undefined);
  beat();
  const beating = setInterval(beat, LEASE_MS / 3);
  return work.finally(() => clearInterval(beating));
}

/**
 * Memory of a browser that was just launched, with room for a page. What browsers use beyond that
 * is measured.
 */
const BROWSER_BYTES = 256 * 1024 ** 2;

/** Limits of this machine: one launch at a time per core; simulated browsers need none. */
async function hostLimits({ browsers, pool }: Infrastructure['config']) {
  if (browsers.kind === 'simulated')
    return {
      limits: { ...pool, launchesAtOnce: pool.max, browserBytes: 0 },
      readHost: async () => ({ memoryFreeBytes: null, cpuPressure: null }),
    };
  // Process browsers share this process's cgroup limits; containers have the machine's.
  const scope: HostScope = browsers.kind === 'process' ? 'group' : 'machine';
  return {
    limits: { ...pool, launchesAtOnce: await coresOf({ scope }), browserBytes: BROWSER_BYTES },
    readHost: () => readHost({ scope }),
  };
}

async function makeBrowsers(infrastructure: Infrastructure): Promise<Browsers> {
  const { config, programs, serverId, log, print, ending: signal } = infrastructure;
  const { kind, simulatedLaunchMs, simulatedFailRate, docker } = config.browsers;
  if (docker !== null) return createDockerBrowsers({ ...docker, serverId, log, print, signal });
  if (kind === 'simulated')
    return createSimulatedBrowsers({ launchMs: simulatedLaunchMs, failRate: simulatedFailRate });
  if (programs === null) throw new Error('the programs of process browsers are missing');
  return createProcessBrowsers({ ...programs, stateDir: join(config.dataDir, 'browsers') });
}

/**
 * The address by which gateways on other machines reach this one: DOCKER_PUBLISH if set (a
 * container's own address is not its host's), else the first external IPv4 address.
 */
function advertisedAddress({ browsers: { docker } }: Infrastructure['config']): string {
  if (docker !== null && docker.publish !== null) return docker.publish;
  const addresses = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  const found = addresses.find(({ family, internal }) => family === 'IPv4' && !internal);
  return found?.address ?? '127.0.0.1';
}
