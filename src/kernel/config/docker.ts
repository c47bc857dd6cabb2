import { isIP, isIPv4 } from 'node:net';
import { BadConfig, duration, integer, oneOf, type Read } from './parse.ts';

/** Docker engine and network of the browsers, and their resource limits. */
export type DockerConfig = {
  host: string;
  network: string;
  /** null: the image is built from deploy/browser. */
  image: string | null;
  /** Milliseconds from one build of our own image to the next; null: it is not rebuilt. */
  rebuildMs: number | null;
  /** Address by which gateways reach browsers; null: derived from where the service runs. */
  publish: string | null;
  /** Name servers of the browsers; empty: those of the engine. */
  dns: readonly string[];
  isolation: 'required' | 'best-effort';
  /** What happens to the browsers when the provisioner shuts down. */
  onShutdown: 'stop' | 'leave';
  limits: { memoryBytes: number; cpus: number; pids: number };
};

export const dockerVariables = {
  DOCKER_HOST: {
    fallback: 'unix:///var/run/docker.sock',
    meaning: 'address of the Docker engine: unix:///path or tcp://host:port',
  },
  DOCKER_NETWORK: {
    fallback: 'browser-sessions',
    meaning: 'network of the browsers; created if missing',
  },
  DOCKER_PUBLISH: {
    fallback: '',
    meaning: 'address of the engine’s host for TLS from gateways to browsers; empty: same host',
  },
  DOCKER_DNS: { fallback: '', meaning: 'name servers of the browsers, a,b; empty: the engine’s' },
  DOCKER_ISOLATION: {
    fallback: 'required',
    meaning: 'required: start only if a probe shows that the network is closed; or best-effort',
  },
  DOCKER_ON_SHUTDOWN: {
    fallback: '',
    meaning:
      'browsers at SIGTERM: stop, or leave to the next start; empty: leave if NATS_URL is set',
  },
  BROWSER_IMAGE: { fallback: '', meaning: 'image of the browsers; empty: built on first use' },
  BROWSER_IMAGE_REBUILD: {
    fallback: '7d',
    meaning: 'age at which our own image is rebuilt with the newest Chromium; 0: never',
  },
  BROWSER_MEMORY_MB: { fallback: '2048', meaning: 'maximum memory of a browser' },
  BROWSER_CPUS: { fallback: '2', meaning: 'maximum number of cores of a browser, as 1.5' },
  BROWSER_PIDS: {
    fallback: '512',
    meaning: 'maximum number of processes and threads of a browser',
  },
} as const;
type Name = keyof typeof dockerVariables | 'NATS_URL';

const MIB = 1024 ** 2;

/** @throws BadConfig naming the variable that is wrong */
export function readDocker(read: Read<Name>): DockerConfig {
  return {
    host: readHost(read('DOCKER_HOST')),
    network: readName(read('DOCKER_NETWORK')),
    image: read('BROWSER_IMAGE') || null,
    rebuildMs: readRebuild(read),
    publish: readPublish(read('DOCKER_PUBLISH')),
    dns: readDns(read('DOCKER_DNS')),
    isolation: oneOf('DOCKER_ISOLATION', read, ['required', 'best-effort']),
    onShutdown: readOnShutdown(read),
    limits: {
      ...readLimits(read),
      pids: integer('BROWSER_PIDS', read, 64, 100_000),
    },
  };
}

/** The most that one browser uses. @throws BadConfig naming the variable that is wrong */
export function readLimits(read: Read<'BROWSER_MEMORY_MB' | 'BROWSER_CPUS'>) {
  return {
    // Chromium itself does not start with less.
    memoryBytes: integer('BROWSER_MEMORY_MB', read, 192, 1_048_576) * MIB,
    cpus: readCpus(read('BROWSER_CPUS')),
  };
}

const HOUR_MS = 3_600_000;

function readRebuild(read: Read<Name>): number | null {
  if (read('BROWSER_IMAGE_REBUILD') === '0') return null;
  const ms = duration('BROWSER_IMAGE_REBUILD', read);
  if (ms === 0) return null;
  // A build takes minutes, and each one replaces all idle browsers.
  if (ms < HOUR_MS)
    throw new BadConfig(`BROWSER_IMAGE_REBUILD: ${read('BROWSER_IMAGE_REBUILD')} is less than 1h`);
  return ms;
}

/** A service that is one process (embedded NATS) stops its browsers when it shuts down. */
function readOnShutdown(read: Read<Name>): DockerConfig['onShutdown'] {
  if (read('DOCKER_ON_SHUTDOWN') === '') return read('NATS_URL') === '' ? 'stop' : 'leave';
  return oneOf('DOCKER_ON_SHUTDOWN', read, ['stop', 'leave']);
}

function readHost(text: string): string {
  const isSocket = /^unix:\/\/\/./.test(text);
  const { protocol, hostname } = URL.parse(text) ?? { protocol: '', hostname: '' };
  const isAddress = ['tcp:', 'http:', 'https:'].includes(protocol) && hostname !== '';
  if (!isSocket && !isAddress)
    throw new BadConfig(`DOCKER_HOST: ${text} is neither unix:///path nor tcp://host:port`);
  return text;
}

function readName(text: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/.test(text))
    throw new BadConfig(`DOCKER_NETWORK: ${text} is not a valid network name`);
  return text;
}

/** The address that gateways connect to, so it cannot be the wildcard address. */
function readPublish(text: string): string | null {
  if (text === '') return null;
  if (isIP(text) === 0 || ['0.0.0.0', '::'].includes(text))
    throw new BadConfig(`DOCKER_PUBLISH: ${text} is not the address of a host`);
  return text;
}

function readDns(text: string): readonly string[] {
  const addresses = text.split(',').map((part) => part.trim());
  if (text === '') return [];
  const wrong = addresses.find((address) => !isIPv4(address));
  if (wrong !== undefined) throw new BadConfig(`DOCKER_DNS: ${wrong} is not an IPv4 address`);
  return addresses;
}

function readCpus(text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value < 0.1 || value > 1024)
    throw new BadConfig(`BROWSER_CPUS: ${text} is not from 0.1 to 1024`);
  return value;
}
