import { readFile, stat } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { driverPath } from '#src/browsers/link/browser-link.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import { createJetStreamWorkQueues } from '#src/kernel/messaging/jetstream/jetstream-work-queue.ts';
import { createJetStreamQuestions } from '#src/kernel/messaging/jetstream/jetstream-questions.ts';
import { LEASE_MS, type Leases } from '#src/kernel/messaging/leases.ts';
import { claimLease, LeaseTaken, ownLeases } from '#src/kernel/messaging/owned-leases.ts';
import type { ServerAddition } from '#src/features/feature.ts';
import { createDockerBrowsers } from '#src/browsers/docker/docker-browsers.ts';
import { createKubernetesBrowsers } from '#src/browsers/kubernetes/pod-browsers.ts';
import { createProcessBrowsers } from '#src/browsers/process/process-browsers.ts';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import type { Browsers } from '#src/browsers/browsers.ts';
import { observedBrowsers } from '#src/browsers/observer/observed-browsers.ts';
import { emulation } from '#src/browsers/observer/emulation.ts';
import { createObserver } from '#src/browsers/observer/observer.ts';
import { coresOf, readHost, type HostScope } from '#src/roles/provisioner/pool/host-resources.ts';
import { countStarts, measureLaunches, watchAge } from '#src/roles/provisioner/metrics.ts';
import { createExtensionsOf } from '#src/browsers/extensions/extension-source.ts';
import { createOwnAddresses, type OwnAddresses } from '#src/kernel/host/own-addresses.ts';
import { startProvisioner } from '#src/roles/provisioner/provisioner.ts';
import { openServerAdditions } from './features.ts';
import type { Infrastructure } from './infrastructure.ts';

export async function composeProvisioner(infrastructure: Infrastructure) {
  const { config, connection, serverId, metrics, readers, sessionEvents, log } = infrastructure;
  countStarts(sessionEvents, serverId, metrics);
  const leases = ownLeases(await createJetStreamLeases(connection), await ownerOf(config.dataDir));
  await claim(leases, infrastructure);
  const browsers = await whileAlive(leases, serverId, makeBrowsers(infrastructure, leases));
  watchAge(browsers, metrics);
  await using stack = new AsyncDisposableStack();
  const additions = await openServerAdditions(
    infrastructure.features,
    { ...infrastructure, browsers, ownAddresses: ownAddressesOf(infrastructure) },
    stack,
  );
  const observers = additions.flatMap(({ observer }) => observer ?? []);
  const observer = createObserver({ parts: [...observers, emulation], log });
  const provisioner = await startProvisioner({
    ...infrastructure,
    openWorkQueue: createJetStreamWorkQueues(connection, { onOpened: readers.add }),
    leases,
    browsers: observedBrowsers(measureLaunches(browsers, metrics), observer),
    ...portsOf(additions),
    parts: additions.flatMap(({ part }) => part ?? []),
    extensionsOf: createExtensionsOf(infrastructure.objects),
    server: { id: serverId, ip: advertisedAddress(config) },
    queueTimeoutMs: config.queue.timeoutMs,
    storedBytesMax: STORED_PROFILES_MAX * config.profiles.bytesMax,
    shutdownWithinMs: config.shutdownWithinMs,
    onShutdown: (config.browsers.docker ?? config.browsers.kubernetes)?.onShutdown ?? 'stop',
    ...(await hostLimits(config)),
    onLogReconnect: (listener) => connection.onReconnect(listener),
  }).catch(async (error: unknown) => {
    // Open handles of the browsers would keep the process from exiting.
    await (browsers.leave?.() ?? browsers[Symbol.asyncDispose]());
    throw error;
  });
  const answering = serveAnswers(infrastructure, additions);
  const opened = stack.move();
  return {
    ...provisioner,
    async [Symbol.asyncDispose]() {
      // Disposed last, even if a step before fails: the ends of sessions store pictures.
      await using _ = opened;
      answering.dispose();
      await provisioner[Symbol.asyncDispose]();
    },
  };
}

/** This machine's addresses too: no browser may go by its proxy to what runs beside it. */
function ownAddressesOf({ config, resolveName }: Infrastructure): OwnAddresses {
  return createOwnAddresses([...config.ownHosts, advertisedAddress(config)], resolveName);
}

/** The ports that a feature has; without it sessions that need one get no browser. */
function portsOf(additions: readonly ServerAddition[]) {
  const openEgress = additions.find((one) => one.openEgress !== undefined)?.openEgress;
  const openProfiles = additions.find((one) => one.openProfiles !== undefined)?.openProfiles;
  return { ...(openEgress && { openEgress }), ...(openProfiles && { openProfiles }) };
}

/** Answers what other processes ask this server. */
function serveAnswers(
  { connection, serverId }: Infrastructure,
  additions: readonly ServerAddition[],
): DisposableStack {
  const questions = createJetStreamQuestions(connection);
  const stack = new DisposableStack();
  for (const { answers = {} } of additions) {
    if (answers.screenshot) stack.use(questions.serve(serverId, 'screenshot', answers.screenshot));
    if (answers.files) stack.use(questions.serve(serverId, 'files', answers.files));
  }
  return stack;
}

/** @throws LeaseTaken, saying what to do */
async function claim(leases: Leases, { serverId, config, ending }: Infrastructure): Promise<void> {
  try {
    await claimLease(leases, serverId, { signal: ending });
  } catch (error) {
    if (!(error instanceof LeaseTaken)) throw error;
    const file = join(config.dataDir, 'server-id');
    throw new LeaseTaken(
      `another process runs as the server ${serverId}, perhaps on a copy of DATA_DIR; each would ` +
        `end the other's browsers. If this is the copy, remove ${file} and start again`,
      { cause: error },
    );
  }
}

/**
 * Names this data folder of this machine since its boot: the same for a process that is restarted
 * there, another one for a copy of the folder. Processes in one folder exclude each other already.
 */
async function ownerOf(dataDir: string): Promise<string> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
  const { dev, ino } = await stat(join(dataDir, 'server-id'));
  return `${boot.trim()}.${dev}.${ino}`;
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

/** A profile that is twice as large as one that is saved is no use to its session. */
const STORED_PROFILES_MAX = 2;

/**
 * Memory of a browser that was just launched, with room for a page. What browsers use beyond that
 * is measured.
 */
const BROWSER_BYTES = 256 * 1024 ** 2;

/** Limits of this machine: one launch at a time per core; simulated browsers need none. */
async function hostLimits({ browsers, pool }: Infrastructure['config']) {
  // The cluster's scheduler knows what its nodes have left.
  if (browsers.kubernetes !== null)
    return {
      limits: {
        ...pool,
        launchesAtOnce: browsers.kubernetes.launchesAtOnce,
        browserBytes: 0,
      },
      readHost: () => ({ memoryFreeBytes: null, cpuPressure: null }),
    };
  if (browsers.kind === 'simulated')
    return {
      limits: { ...pool, launchesAtOnce: pool.max, browserBytes: 0 },
      readHost: () => ({ memoryFreeBytes: null, cpuPressure: null }),
    };
  // Process browsers share this process's cgroup limits; containers have the machine's.
  const scope: HostScope = browsers.kind === 'process' ? 'group' : 'machine';
  return {
    limits: { ...pool, launchesAtOnce: coresOf({ scope }), browserBytes: BROWSER_BYTES },
    readHost: () => readHost({ scope }),
  };
}

async function makeBrowsers(infrastructure: Infrastructure, leases: Leases): Promise<Browsers> {
  const { config, programs, serverId, log, print, linkKeys, ending: signal } = infrastructure;
  const { kind, simulatedLaunchMs, simulatedFailRate, docker, kubernetes } = config.browsers;
  if (kubernetes !== null)
    return createKubernetesBrowsers({
      ...kubernetes,
      serverId,
      linkKeys,
      log,
      signal,
      isServerGone: (id) => isServerGone(infrastructure, leases, id),
    });
  if (docker !== null)
    return createDockerBrowsers({
      ...docker,
      serverId,
      linkKeys,
      log,
      print,
      signal,
      isServerGone: (id) => isServerGone(infrastructure, leases, id),
    });
  if (kind === 'simulated')
    return createSimulatedBrowsers({ launchMs: simulatedLaunchMs, failRate: simulatedFailRate });
  if (programs === null) throw new Error('the programs of process browsers are missing');
  return createProcessBrowsers({
    ...programs,
    stateDir: join(config.dataDir, 'browsers'),
    driverPathOf: (workloadId) => driverPath(linkKeys(workloadId)),
  });
}

/** A server that this event store does not know may be another installation's. */
async function isServerGone(
  { context }: Infrastructure,
  leases: Leases,
  id: string,
): Promise<boolean> {
  const { eventStore } = context;
  const { state } = await loadState<'server'>(
    eventStore,
    { kind: 'server', id },
    {
      fromLeader: true,
    },
  );
  if (state?.status !== 'left' && state?.status !== 'lost') return false;
  return !(await leases.held()).has(id);
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
