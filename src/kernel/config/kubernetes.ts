import { isIP } from 'node:net';
import { BadConfig, duration, entries, integer, oneOf, parseJson, type Read } from './parse.ts';
import { readText } from './secrets.ts';

/** Namespace and Pods of the browsers. Durations in milliseconds. */
export type KubernetesConfig = {
  kubeconfig: string | null;
  /** Null: the service account's, or that of the kubeconfig. */
  namespace: string | null;
  image: string;
  isolation: 'required' | 'best-effort';
  seccomp: string;
  runtimeClass: string | null;
  hasUserNamespace: boolean;
  /** Name servers of the browsers: `cluster`, or addresses; none: those of their nodes. */
  dns: 'cluster' | readonly string[];
  more: Record<string, unknown>;
  /** The ConfigMap of the namespace that owns the browsers; null: nothing owns them. */
  owner: string | null;
  launchTimeoutMs: number;
  launchesAtOnce: number;
  onShutdown: 'stop' | 'leave';
  limits: {
    memoryBytes: number;
    cpus: number;
    requested: { memoryBytes: number; cpus: number };
    filesBytes: number;
  };
};

export const kubernetesVariables = {
  KUBECONFIG: {
    fallback: '',
    meaning: 'kubeconfig file; empty: the Pod’s own, or ~/.kube/config',
  },
  KUBERNETES_NAMESPACE: {
    fallback: '',
    meaning: 'namespace of the browsers; empty: that of the Pod or kubeconfig',
  },
  KUBERNETES_ISOLATION: {
    fallback: 'required',
    meaning: 'required: start only if Pods show that NetworkPolicies are in force; or best-effort',
  },
  KUBERNETES_SECCOMP: {
    fallback: 'browser-session-service.json',
    meaning: 'seccomp profile in the kubelet’s folder; or RuntimeDefault, with gVisor or Kata',
  },
  KUBERNETES_RUNTIME_CLASS: {
    fallback: '',
    meaning: 'runtimeClassName of the browsers, as gvisor; empty: the cluster’s own',
  },
  KUBERNETES_USER_NAMESPACES: {
    fallback: 'no',
    meaning: 'yes: each browser has its own user namespace (hostUsers: false)',
  },
  KUBERNETES_DNS: {
    fallback: '',
    meaning: 'name servers of the browsers: a,b, or cluster; empty: those of the node',
  },
  KUBERNETES_POD: {
    fallback: '{}',
    meaning:
      'JSON of further fields of the Pods: nodeSelector, tolerations, affinity, ' +
      'priorityClassName, imagePullSecrets, topologySpreadConstraints',
  },
  KUBERNETES_OWNER: {
    fallback: '',
    meaning:
      'ConfigMap in the browsers’ namespace that owns them: Kubernetes deletes them with ' +
      'it; empty: none',
  },
  KUBERNETES_LAUNCH_TIMEOUT: {
    fallback: '2m',
    meaning: 'longest launch of a browser, the start of a node included',
  },
  KUBERNETES_LAUNCHES: { fallback: '10', meaning: 'launches of a server at once' },
  KUBERNETES_ON_SHUTDOWN: {
    fallback: '',
    meaning: 'the same as DOCKER_ON_SHUTDOWN',
  },
  BROWSER_MEMORY_REQUEST_MB: {
    fallback: '512',
    meaning: 'memory that a node reserves for a browser',
  },
  BROWSER_CPUS_REQUEST: { fallback: '0.25', meaning: 'cores that a node reserves for a browser' },
} as const;
type Name = keyof typeof kubernetesVariables | 'NATS_URL' | 'BROWSER_IMAGE';

const MIB = 1024 ** 2;
/** What `KUBERNETES_POD` may set: where Pods run, and what may pull their image. */
const ADDITIONS = [
  'nodeSelector',
  'tolerations',
  'affinity',
  'priorityClassName',
  'imagePullSecrets',
  'topologySpreadConstraints',
];

/**
 * @param limits of one browser
 * @param filesBytes of one session
 * @throws BadConfig naming the variable that is wrong
 */
export function readKubernetes(
  read: Read<Name>,
  limits: { memoryBytes: number; cpus: number },
  filesBytes: number,
): KubernetesConfig {
  const image = read('BROWSER_IMAGE');
  if (image === '')
    throw new BadConfig(
      'BROWSER_IMAGE: BROWSERS=kubernetes needs an image that its nodes can pull',
    );
  const requested = {
    memoryBytes: integer('BROWSER_MEMORY_REQUEST_MB', read, 64, 1_048_576) * MIB,
    cpus: readCpus(read('BROWSER_CPUS_REQUEST')),
  };
  if (requested.memoryBytes > limits.memoryBytes)
    throw new BadConfig('BROWSER_MEMORY_REQUEST_MB: is more than BROWSER_MEMORY_MB');
  if (requested.cpus > limits.cpus)
    throw new BadConfig('BROWSER_CPUS_REQUEST: is more than BROWSER_CPUS');
  return {
    kubeconfig: readFile(read('KUBECONFIG')),
    namespace: readName('KUBERNETES_NAMESPACE', read, 'namespace'),
    image,
    isolation: oneOf('KUBERNETES_ISOLATION', read, ['required', 'best-effort']),
    seccomp: readSeccomp(read('KUBERNETES_SECCOMP')),
    runtimeClass: readName('KUBERNETES_RUNTIME_CLASS', read, 'RuntimeClass'),
    hasUserNamespace: oneOf('KUBERNETES_USER_NAMESPACES', read, ['yes', 'no']) === 'yes',
    dns: readDns(read('KUBERNETES_DNS')),
    more: readPod(read('KUBERNETES_POD')),
    owner: readName('KUBERNETES_OWNER', read, 'ConfigMap'),
    launchTimeoutMs: duration('KUBERNETES_LAUNCH_TIMEOUT', read),
    launchesAtOnce: integer('KUBERNETES_LAUNCHES', read, 1, 1_000),
    onShutdown: readOnShutdown(read),
    limits: {
      ...limits,
      requested,
      // A file is written beside the one that it replaces.
      filesBytes: 2 * filesBytes,
    },
  };
}

function readFile(path: string): string | null {
  if (path === '') return null;
  readText('KUBECONFIG', path);
  return path;
}

/** The name of an object of Kubernetes; null: none is given. */
function readName<One extends Name>(name: One, read: Read<One>, what: string): string | null {
  const text = read(name);
  if (text === '') return null;
  if (!/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/.test(text))
    throw new BadConfig(`${name}: ${text} is not the name of a ${what}`);
  return text;
}

function readSeccomp(text: string): string {
  if (text.startsWith('/') || text.split('/').includes('..'))
    throw new BadConfig(
      `KUBERNETES_SECCOMP: ${text} is not the path of a profile below the kubelet’s`,
    );
  return text;
}

function readOnShutdown(read: Read<Name>): KubernetesConfig['onShutdown'] {
  if (read('KUBERNETES_ON_SHUTDOWN') === '') return read('NATS_URL') === '' ? 'stop' : 'leave';
  return oneOf('KUBERNETES_ON_SHUTDOWN', read, ['stop', 'leave']);
}

function readDns(text: string): KubernetesConfig['dns'] {
  if (text === 'cluster') return text;
  const addresses = text.split(',').map((part) => part.trim());
  if (text === '') return [];
  const wrong = addresses.find((address) => isIP(address) === 0);
  if (wrong !== undefined) throw new BadConfig(`KUBERNETES_DNS: ${wrong} is not an IP address`);
  return addresses;
}

function readPod(text: string): Record<string, unknown> {
  const fields = entries('KUBERNETES_POD', parseJson('KUBERNETES_POD', text));
  const wrong = fields.find(([name]) => !ADDITIONS.includes(name));
  if (wrong !== undefined)
    throw new BadConfig(`KUBERNETES_POD: ${wrong[0]} is none of ${ADDITIONS.join(', ')}`);
  return Object.fromEntries(fields);
}

function readCpus(text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value < 0.01 || value > 1024)
    throw new BadConfig(`BROWSER_CPUS_REQUEST: ${text} is not from 0.01 to 1024`);
  return value;
}
