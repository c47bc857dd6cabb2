import type Docker from 'dockerode';
import type { Endpoint } from '../browsers.ts';

/**
 * How our containers are known, by this process and by the next one after a crash. Labels cannot be
 * added to a container that runs, so the session that it is given to becomes a part of its name:
 * `bss.<workload>`, then `bss.<workload>.<session>`. No id holds a dot.
 */

const OWNER = 'browser-session-service';
const SERVER = `${OWNER}.server`;
const WORKLOAD = `${OWNER}.workload`;
const PREFIX = 'bss';

export const CDP_PORT = 9223;
export const VNC_PORT = 5900;

export function labelsOf(serverId: string, workloadId: string): Record<string, string> {
  return { owner: OWNER, [SERVER]: serverId, [WORKLOAD]: workloadId };
}

/** The labels of what is ours and no browser. */
export function ownLabel(): Record<string, string> {
  return { owner: OWNER };
}

export function nameOf(workloadId: string, sessionId?: string): string {
  return [PREFIX, workloadId, ...(sessionId === undefined ? [] : [sessionId])].join('.');
}

/** The engine's filter for the browsers of a server, or for one of them. */
export function filterFor(serverId: string, workloadId?: string): { label: string[] } {
  const one = workloadId === undefined ? [] : [`${WORKLOAD}=${workloadId}`];
  return { label: [`owner=${OWNER}`, `${SERVER}=${serverId}`, ...one] };
}

/** A container of ours as the engine lists it. */
export type Found = {
  containerId: string;
  workloadId: string;
  sessionId: string | null;
  isRunning: boolean;
  /** Null where it has no address any more, or not yet. */
  cdp: Endpoint | null;
  vnc: Endpoint | null;
};

/** What a container is that was listed by `filterFor`. */
export function readFound(info: Docker.ContainerInfo, publish: string | null): Found {
  const [name = ''] = info.Names;
  const [, workloadId = '', sessionId = null] = name.replace(/^\//, '').split('.');
  const endpoint = (port: number) => endpointOf(info, port, publish);
  return {
    containerId: info.Id,
    workloadId: info.Labels[WORKLOAD] ?? workloadId,
    sessionId,
    // One that an operator has paused has not ended.
    isRunning: info.State === 'running' || info.State === 'paused',
    cdp: endpoint(CDP_PORT),
    vnc: endpoint(VNC_PORT),
  };
}

/** The workload that an event of the engine is about. */
export function workloadOfEvent(attributes: Record<string, string>): string | null {
  return attributes[WORKLOAD] ?? null;
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
