import type Docker from 'dockerode';
import type { BrowserAddress } from '#src/browsers/link/browser-link.ts';
import type { Endpoint, ObservedBrowser, RunningBrowser } from '../browsers.ts';
import type { ServersBrowser } from '../left-servers.ts';
import { browserAt } from '../until-ready.ts';
import { removeContainer } from './container.ts';
import { closedAtOf } from './container-exit.ts';
import { bounded } from './engine.ts';
import { hasProfile, unpause } from './folders/profile-volume.ts';
import {
  CDP_PORT,
  EGRESS_PORT,
  filterFor,
  labelled,
  LINK,
  parseName,
  serverIdOf,
  TLS_PSK,
  VNC_PORT,
  WEBDRIVER_PORT,
  workloadIdOf,
} from './naming.ts';
import type { DockerSite } from './site.ts';
import { webdriverOf, type Confinement } from './spec.ts';

/** A browser's container as the engine lists it. */
export type FoundContainer = {
  containerId: string;
  /** The engine's id of its image. */
  imageId: string;
  workloadId: string;
  /** Null where the browser has not been assigned. */
  sessionId: string | null;
  isRunning: boolean;
  /** Also by a service that was killed while it read the browser's profile. */
  isPaused: boolean;
  /** Whether it was launched with a profile, which can be read once it has ended. */
  hasProfile: boolean;
  /** Null where the container has no address (any more). */
  cdp: BrowserAddress | null;
  vnc: BrowserAddress | null;
  /** Where its proxy is served, if it was launched with one. */
  egress: BrowserAddress | null;
} & Pick<RunningBrowser, 'webdriver'>;

/**
 * Lists the containers of this server's browsers, or of one workload: running and ended, of this
 * process and of earlier ones.
 */
export async function listContainers(
  { docker, confinement }: DockerSite,
  workloadId?: string,
): Promise<FoundContainer[]> {
  const { serverId } = confinement;
  const filters = JSON.stringify(filterFor(serverId, workloadId));
  const infos = await docker.listContainers({ all: true, filters, ...bounded() });
  return infos.map((info) => parseContainer(info, confinement));
}

/** The browsers of all servers on the engine. */
export async function browsersOfAll(docker: Docker): Promise<ServersBrowser[]> {
  const filters = JSON.stringify(labelled());
  const infos = await docker.listContainers({ all: true, filters, ...bounded() });
  return infos.flatMap(({ Id: container, Labels }) => {
    const serverId = serverIdOf(Labels);
    if (serverId === null) return [];
    const remove = () => removeContainer(docker.getContainer(container));
    return [{ serverId, place: { container }, remove }];
  });
}

function parseContainer(
  info: Docker.ContainerInfo,
  { publish, linkKeys }: Pick<Confinement, 'publish' | 'linkKeys'>,
): FoundContainer {
  const { workloadId: named, sessionId } = parseName(info.Names[0] ?? '');
  const workloadId = workloadIdOf(info.Labels) ?? named;
  // Without the label an earlier version of the service has launched it: plain TCP.
  const link = info.Labels[LINK] === TLS_PSK ? { linkKey: linkKeys(workloadId) } : {};
  const address = (port: number): BrowserAddress | null => {
    const endpoint = endpointOf(info, port, publish);
    return endpoint === null ? null : { ...endpoint, ...link };
  };
  return {
    containerId: info.Id,
    imageId: info.ImageID,
    workloadId,
    sessionId,
    // A container that an operator has paused has not ended.
    isRunning: info.State === 'running' || info.State === 'paused',
    isPaused: info.State === 'paused',
    hasProfile: hasProfile(info.Mounts),
    cdp: address(CDP_PORT),
    vnc: address(VNC_PORT),
    egress: address(EGRESS_PORT),
    ...webdriverOf(info.Labels, endpointOf(info, WEBDRIVER_PORT, publish)),
  };
}

function endpointOf(
  { NetworkSettings, Ports }: Docker.ContainerInfo,
  port: number,
  publish: string | null,
): Endpoint | null {
  if (publish !== null) {
    const found = Ports.find((one) => one.PrivatePort === port && one.PublicPort !== undefined);
    return found === undefined ? null : { host: publish, port: found.PublicPort };
  }
  const [network] = Object.values(NetworkSettings.Networks);
  return network === undefined || network.IPAddress === ''
    ? null
    : { host: network.IPAddress, port };
}

/** Looks at a container of an earlier process. */
export async function look(
  { docker }: Pick<DockerSite, 'docker'>,
  found: FoundContainer,
): Promise<Pick<ObservedBrowser, 'adoptable' | 'closedAt'>> {
  const container = docker.getContainer(found.containerId);
  if (found.isPaused) await unpause(container);
  if (found.isRunning) return { adoptable: await findBrowser(found) };
  const closedAt = await closedAtOf(container);
  return { adoptable: null, ...(closedAt !== null && { closedAt }) };
}

/** The browser in a container of an earlier process; null if none answers. */
export async function findBrowser(found: FoundContainer): Promise<RunningBrowser | null> {
  const { workloadId, isRunning, cdp, vnc, webdriver } = found;
  if (!isRunning || cdp === null || vnc === null) return null;
  return browserAt(cdp, { workloadId, vnc, ...(webdriver !== undefined && { webdriver }) });
}
