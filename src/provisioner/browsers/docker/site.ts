import type Docker from 'dockerode';
import type { Log } from '#src/telemetry/logger.ts';
import { connectEngine, DockerUnavailable, messageOf } from './engine.ts';
import { ensureBrowserImage, ensureRulesImage, readSeccomp } from './image.ts';
import { openGuard } from './guard.ts';
import type { Guard, GuardOptions } from './guard.ts';
import { filterFor } from './naming.ts';
import { ensureNetwork, isOnEngineHost } from './network.ts';
import type { BrowserLimits, Confinement } from './spec.ts';

export type DockerSiteOptions = {
  /** `unix:///path` or `tcp://host:port`. */
  host: string;
  serverId: string;
  /** Name of the sessions' network; it is made where it is missing. */
  network: string;
  /** null: built from deploy/browser. */
  image: string | null;
  /**
   * Address of the engine's host on which browsers are published, as the gateway reaches it; null:
   * their own addresses where this process is on that host, else its loopback.
   */
  publish: string | null;
  /** Name servers of the browsers; empty: those of the engine. */
  dns: readonly string[];
  /** Whether the start is refused where the network's isolation is not proved. */
  isolation: 'required' | 'best-effort';
  limits: BrowserLimits;
  /** Gets a line for each step that takes long. */
  say: (line: string) => void;
  log: Pick<Log, 'info' | 'warn'>;
  /** Aborts where the engine is not to be waited for any longer. */
  signal?: AbortSignal;
};

/** An engine that is ready to run browsers of this server. */
export type DockerSite = {
  docker: Docker;
  confinement: Confinement;
  /** The engine's filter for what is this server's. */
  filter: { label: string[] };
  guard: Guard;
};

/** @throws DockerUnavailable */
export async function openSite(options: DockerSiteOptions): Promise<DockerSite> {
  const { serverId, dns, limits, say } = options;
  const { docker, cpus } = await connectEngine(options.host, options.signal);
  const image = await ensureBrowserImage(docker, options.image, say);
  const network = await ensureNetwork(docker, options.network);
  const confinement: Confinement = {
    image,
    serverId,
    network: network.name,
    publish: options.publish ?? (isOnEngineHost(network) ? null : '127.0.0.1'),
    dns,
    seccomp: readSeccomp(),
    // The engine refuses more cores than it has.
    limits: { ...limits, cpus: Math.min(limits.cpus, cpus) },
  };
  const rulesImage = () => ensureRulesImage(docker, say);
  const { isolation, log } = options;
  const guard = await isolate({
    parts: { docker, network, confinement, rulesImage },
    isolation,
    log,
  });
  return { docker, confinement, filter: filterFor(serverId), guard };
}

async function isolate(options: GuardOptions): Promise<Guard> {
  try {
    return await openGuard(options);
  } catch (error) {
    throw new DockerUnavailable(
      `DOCKER_ISOLATION: ${messageOf(error)}. Browsers are not started like that; ` +
        'DOCKER_ISOLATION=best-effort starts them all the same.',
      { cause: error },
    );
  }
}
