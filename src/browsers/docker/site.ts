import type Docker from 'dockerode';
import type { LinkKeys } from '#src/browsers/link/browser-link.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { createAddressRing } from './addresses.ts';
import { createClosedNetwork, type ClosedNetwork } from './egress/closed-network.ts';
import { connectEngine, DockerUnavailable, messageOf } from './engine.ts';
import { openBrowserImage } from './browser-image.ts';
import { createCurrentImage, type CurrentImage } from './current-image.ts';
import { ensureRulesImage, readSeccomp } from './image.ts';
import { openGuard } from './guard.ts';
import type { Guard, GuardOptions } from './guard.ts';
import { filterFor } from './naming.ts';
import { ensureNetwork, isOnEngineHost } from './network.ts';
import type { BrowserLimits, Confinement } from './spec.ts';

export type DockerSiteOptions = {
  /** `unix:///path` or `tcp://host:port`. */
  host: string;
  serverId: string;
  /** Name of the sessions' network; it is created if it is missing. */
  network: string;
  /** null: built from deploy/browser. */
  image: string | null;
  /**
   * Address of the engine's host at which browsers are published, as the gateway reaches it. Null:
   * the containers' own addresses if this process is on that host, else its loopback address.
   */
  publish: string | null;
  /** Name servers of the browsers; empty: the engine's. */
  dns: readonly string[];
  /** `required`: the start fails if the network's isolation cannot be verified. */
  isolation: 'required' | 'best-effort';
  limits: BrowserLimits;
  /** Milliseconds from one build of our own image to the next; null or absent: never. */
  rebuildMs?: number | null;
  /** The keys of the browsers' links. */
  linkKeys: LinkKeys;
  /** Gets a line for each long step. */
  print: (line: string) => void;
  log: Pick<Logger, 'info' | 'warn'>;
  /** Aborts the wait for the engine. */
  signal?: AbortSignal;
};

/** An engine that is ready to run browsers of this server. */
export type DockerSite = {
  docker: Docker;
  /** Its `image` follows the current one. */
  confinement: Confinement;
  image: CurrentImage;
  /** The engine's filter for this server's browsers. */
  filter: { label: string[] };
  guard: Guard;
  /** The network of browsers whose only way out is their proxy. */
  closed: ClosedNetwork;
};

/** @throws DockerUnavailable */
export async function openSite(options: DockerSiteOptions): Promise<DockerSite> {
  const { serverId, dns, limits, linkKeys, print } = options;
  const { docker, cpus } = await connectEngine(options.host, options.signal);
  const first = await openBrowserImage(docker, options.image, print);
  const network = await ensureNetwork(docker, options.network);
  const confinement: Confinement = {
    image: first.name,
    serverId,
    network: network.name,
    publish: options.publish ?? (isOnEngineHost(network) ? null : '127.0.0.1'),
    dns,
    linkKeys,
    nextAddress: createAddressRing(() => dependencies.network),
    seccomp: readSeccomp(),
    // The engine refuses more cores than it has.
    limits: { ...limits, cpus: Math.min(limits.cpus, cpus) },
  };
  const rulesImage = () => ensureRulesImage(docker, print);
  const { isolation, log } = options;
  const dependencies = { docker, network, confinement, rulesImage };
  const open = await isolate({ dependencies, isolation, log });
  const closed = createClosedNetwork({ docker, name: network.name, confinement, rulesImage, log });
  const image = createCurrentImage({ docker, first, given: options.image });
  const guard = {
    async check() {
      await open.check();
      await closed.check();
    },
  };
  return { docker, confinement, image, filter: filterFor(serverId), guard, closed };
}

async function isolate(options: GuardOptions): Promise<Guard> {
  try {
    return await openGuard(options);
  } catch (error) {
    throw new DockerUnavailable(
      `DOCKER_ISOLATION: ${messageOf(error)}. Browsers do not start without isolation; ` +
        'DOCKER_ISOLATION=best-effort starts them without it.',
      { cause: error },
    );
  }
}
