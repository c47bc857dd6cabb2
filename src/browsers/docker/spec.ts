import type Docker from 'dockerode';
import { linkKeyText, type LinkKeys } from '#src/browsers/link/browser-link.ts';
import type { BrowserSpec, Endpoint, RunningBrowser } from '../browsers.ts';
import type { NextAddress } from './addresses.ts';
import { chromiumEnvironment, chromiumFlags, extensionFlags } from '../chromium/flags.ts';
import {
  CDP_PORT,
  CHROMEDRIVER,
  CHROMIUM_PORT,
  EGRESS_PORT,
  labelsOf,
  nameOf,
  RELAY_PORT,
  VNC_PORT,
  WEBDRIVER,
  WEBDRIVER_PORT,
} from './naming.ts';
import { downloadsMount } from './folders/container-folders.ts';
import { profileFlags, profileMounts } from './folders/profile-volume.ts';
import { EXTENSIONS_FOLDER, extensionMounts } from './folders/put-extensions.ts';

/** What the containers of all browsers of a server have in common. */
export type Confinement = {
  image: string;
  serverId: string;
  /** The name of the sessions' network. */
  network: string;
  /** Address at which CDP and VNC are published; null: not published, reached directly. */
  publish: string | null;
  /** Name servers; empty: the engine's. */
  dns: readonly string[];
  /** The profile's JSON text; only Docker's command line accepts a file. */
  seccomp: string;
  limits: BrowserLimits;
  /** The keys of the browsers' links. */
  linkKeys: LinkKeys;
  /** The address of the next container, where it is reached directly. */
  nextAddress: NextAddress;
};

export type BrowserLimits = { memoryBytes: number; cpus: number; pids: number };

const MIB = 1024 ** 2;
const TMPFS = 'rw,nosuid,nodev,noexec';
/** For Chromium's disk cache and profile; a tmpfs counts towards the memory limit. */
const TMP_BYTES = 512 * MIB;
const HOME_BYTES = 64 * MIB;

/** The options of one browser's container. Pure. */
export function browserContainer(
  confinement: Confinement,
  spec: BrowserSpec,
  address: string | null = null,
): Docker.ContainerCreateOptions {
  const { image, serverId, network } = confinement;
  const { workloadId, screen } = spec;
  const hasProxy = spec.egress !== undefined;
  return {
    name: nameOf(workloadId),
    Image: image,
    Labels: labelsOf(serverId, workloadId),
    Hostname: 'browser',
    User: '1000:1000',
    Env: environment({
      ...chromiumEnvironment(spec),
      SCREEN_SIZE: `${screen.width}x${screen.height}`,
      ...(hasProxy ? { EGRESS: '1' } : {}),
    }),
    Cmd: [
      ...profileFlags(spec),
      ...extensionFlags(spec, EXTENSIONS_FOLDER),
      ...chromiumFlags(spec, hasProxy ? RELAY_PORT : null),
    ],
    HostConfig: {
      ...confined(confinement),
      ...publishing(confinement, hasProxy ? [EGRESS_PORT] : []),
      Mounts: [downloadsMount(), ...extensionMounts(spec), ...profileMounts(spec)],
    },
    ...(address === null
      ? {}
      : {
          NetworkingConfig: {
            EndpointsConfig: { [network]: { IPAMConfig: { IPv4Address: address } } },
          },
        }),
  };
}

/**
 * What entrypoint.sh reads: neither `docker inspect` nor a program's environment shows it. Pure.
 */
export function browserInput(
  { linkKeys }: Pick<Confinement, 'linkKeys'>,
  { workloadId, vncPassword, headless }: BrowserSpec,
): string {
  // Without a password entrypoint.sh starts no X server.
  return `${linkKeyText(linkKeys(workloadId))}\n${headless === true ? '' : vncPassword}\n`;
}

/** Publishes CDP, VNC and WebDriver, where they are not reached directly. */
export function publishing(
  { publish }: Pick<Confinement, 'publish'>,
  more: readonly number[] = [],
): Docker.HostConfig {
  if (publish === null) return {};
  const ports = [CDP_PORT, VNC_PORT, WEBDRIVER_PORT, ...more].map((port) => `${port}/tcp`);
  const binding = [{ HostIp: publish, HostPort: '' }];
  return { PortBindings: Object.fromEntries(ports.map((port) => [port, binding])) };
}

/** Where the gateway reaches a port of a started container. */
export function endpointOf(
  { Networks, Ports }: Docker.ContainerInspectInfo['NetworkSettings'],
  port: number,
  { network, publish }: Pick<Confinement, 'network' | 'publish'>,
): Endpoint {
  if (publish === null) return { host: Networks[network]?.IPAddress ?? '', port };
  return { host: publish, port: Number(Ports[`${port}/tcp`]?.[0]?.HostPort) };
}

/** The WebDriver of a container with these labels, at this address; its image may have none. */
export function webdriverOf(
  labels: Record<string, string>,
  address: Endpoint | null,
): Pick<RunningBrowser, 'webdriver'> {
  if (address === null || labels[WEBDRIVER] !== CHROMEDRIVER) return {};
  const { host, port } = address;
  return { webdriver: { host, port, cdpPort: CHROMIUM_PORT } };
}

/** Confines code that breaks out of a page: no capability, read-only root, limits. */
export function confined(confinement: Confinement): Docker.HostConfig {
  const { network, dns, seccomp, limits } = confinement;
  return {
    NetworkMode: network,
    ...(dns.length === 0 ? {} : { Dns: [...dns] }),
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges', `seccomp=${seccomp}`],
    ReadonlyRootfs: true,
    Tmpfs: {
      '/tmp': `${TMPFS},size=${TMP_BYTES},mode=1777`,
      '/home/browser': `${TMPFS},size=${HOME_BYTES},uid=1000,gid=1000,mode=700`,
    },
    Memory: limits.memoryBytes,
    // Equal to `Memory`: no swap.
    MemorySwap: limits.memoryBytes,
    PidsLimit: limits.pids,
    NanoCpus: Math.round(limits.cpus * 1e9),
    Ulimits: [{ Name: 'core', Soft: 0, Hard: 0 }],
    RestartPolicy: { Name: 'no' },
    LogConfig: { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '1' } },
  };
}

function environment(variables: Record<string, string>): string[] {
  return Object.entries(variables).map(([name, value]) => `${name}=${value}`);
}
