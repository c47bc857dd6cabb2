import { isIP, isIPv4 } from 'node:net';
import {
  decimal,
  duration,
  integer,
  list,
  matching,
  mebibytes,
  oneOf,
  optional,
  text,
  type Form,
  type Values,
  variable,
} from './parse.ts';

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

const engineAddress = matching((given) => {
  const { protocol, hostname } = URL.parse(given) ?? { protocol: '', hostname: '' };
  const isAddress = ['tcp:', 'http:', 'https:'].includes(protocol) && hostname !== '';
  return isAddress || /^unix:\/\/\/./.test(given);
}, 'is neither unix:///path nor tcp://host:port');

const networkName = matching(
  (given) => /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/.test(given),
  'is not a valid network name',
);

/** The address that gateways connect to, so it cannot be the wildcard address. */
const hostAddress = matching(
  (given) => isIP(given) !== 0 && !['0.0.0.0', '::'].includes(given),
  'is not the address of a host',
);

const nameServer = matching(isIPv4, 'is not an IPv4 address');

/** null: never. A build takes minutes, and each one replaces all idle browsers. */
const rebuild: Form<number | null> = {
  says: '0, or from 1h',
  parse: (given, name) =>
    given === '0' || duration().parse(given, name) === 0 ? null : duration('1h').parse(given, name),
};

export const dockerVariables = {
  DOCKER_HOST: variable(
    engineAddress,
    'unix:///var/run/docker.sock',
    'address of the Docker engine: unix:///path or tcp://host:port',
  ),
  DOCKER_NETWORK: variable(
    networkName,
    'browser-sessions',
    'network of the browsers; created if missing',
  ),
  DOCKER_PUBLISH: variable(
    optional(hostAddress),
    '',
    'address of the engine’s host for TLS from gateways to browsers; empty: same host',
  ),
  DOCKER_DNS: variable(
    list(nameServer),
    '',
    'name servers of the browsers, a,b; empty: the engine’s',
  ),
  DOCKER_ISOLATION: variable(
    oneOf('required', 'best-effort'),
    'required',
    'required: start only if a probe shows that the network is closed; or best-effort',
  ),
  DOCKER_ON_SHUTDOWN: variable(
    optional(oneOf('stop', 'leave')),
    '',
    'browsers at SIGTERM: stop, or leave to the next start; empty: leave if NATS_URL is set',
  ),
  BROWSER_IMAGE: variable(optional(text), '', 'image of the browsers; empty: built on first use'),
  BROWSER_IMAGE_REBUILD: variable(
    rebuild,
    '7d',
    'age at which our own image is rebuilt with the newest Chromium; 0: never',
  ),
  // Chromium itself does not start with less.
  BROWSER_MEMORY_MB: variable(mebibytes(192, 1_048_576), '2048', 'maximum memory of a browser'),
  BROWSER_CPUS: variable(decimal(0.1, 1_024), '2', 'maximum number of cores of a browser, as 1.5'),
  BROWSER_PIDS: variable(
    integer(64, 100_000),
    '512',
    'maximum number of processes and threads of a browser',
  ),
} as const;
type Given = Values<typeof dockerVariables> & { NATS_URL: string | null };

/** @throws BadConfig naming the variable that is wrong */
export function readDocker(values: Given): DockerConfig {
  return {
    host: values.DOCKER_HOST,
    network: values.DOCKER_NETWORK,
    image: values.BROWSER_IMAGE,
    rebuildMs: values.BROWSER_IMAGE_REBUILD,
    publish: values.DOCKER_PUBLISH,
    dns: values.DOCKER_DNS,
    isolation: values.DOCKER_ISOLATION,
    onShutdown: values.DOCKER_ON_SHUTDOWN ?? usualOnShutdown(values),
    limits: { ...readLimits(values), pids: values.BROWSER_PIDS },
  };
}

/** The most that one browser uses. @throws BadConfig naming the variable that is wrong */
export function readLimits(values: Pick<Given, 'BROWSER_MEMORY_MB' | 'BROWSER_CPUS'>) {
  return { memoryBytes: values.BROWSER_MEMORY_MB, cpus: values.BROWSER_CPUS };
}

/** A service that is one process (embedded NATS) stops its browsers when it shuts down. */
export function usualOnShutdown({ NATS_URL: natsUrl }: Pick<Given, 'NATS_URL'>): 'stop' | 'leave' {
  return natsUrl === null ? 'stop' : 'leave';
}
