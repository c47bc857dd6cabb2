import { isIP } from 'node:net';
import { usualOnShutdown } from './docker.ts';
import {
  BadConfig,
  decimal,
  duration,
  integer,
  jsonEntries,
  list,
  matching,
  mebibytes,
  oneOf,
  optional,
  yesOrNo,
  type Form,
  type Values,
  variable,
} from './parse.ts';
import { readableFile } from './secrets.ts';

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

/** The name of an object of Kubernetes. */
const nameOfA = (kind: string) =>
  matching(
    (given) => /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/.test(given),
    `is not the name of a ${kind}`,
  );

const profilePath = matching(
  (given) => !given.startsWith('/') && !given.split('/').includes('..'),
  'is not the path of a profile below the kubelet’s',
);

const addresses = list(matching((given) => isIP(given) !== 0, 'is not an IP address'));
const nameServers: Form<'cluster' | string[]> = {
  says: '',
  parse: (given, name) => (given === 'cluster' ? given : addresses.parse(given, name)),
};

/** What `KUBERNETES_POD` may set: where Pods run, and what may pull their image. */
const ADDITIONS = [
  'nodeSelector',
  'tolerations',
  'affinity',
  'priorityClassName',
  'imagePullSecrets',
  'topologySpreadConstraints',
];
const podFields: Form<Record<string, unknown>> = {
  says: '',
  parse(given, name) {
    const fields = jsonEntries.parse(given, name);
    const wrong = fields.find(([field]) => !ADDITIONS.includes(field));
    if (wrong !== undefined)
      throw new BadConfig(`${name}: ${wrong[0]} is none of ${ADDITIONS.join(', ')}`);
    return Object.fromEntries(fields);
  },
};

export const kubernetesVariables = {
  KUBECONFIG: variable(
    optional(readableFile),
    '',
    'kubeconfig file; empty: the Pod’s own, or ~/.kube/config',
  ),
  KUBERNETES_NAMESPACE: variable(
    optional(nameOfA('namespace')),
    '',
    'namespace of the browsers; empty: that of the Pod or kubeconfig',
  ),
  KUBERNETES_ISOLATION: variable(
    oneOf('required', 'best-effort'),
    'required',
    'required: start only if Pods show that NetworkPolicies are in force; or best-effort',
  ),
  KUBERNETES_SECCOMP: variable(
    profilePath,
    'browser-session-service.json',
    'seccomp profile in the kubelet’s folder; or RuntimeDefault, with gVisor or Kata',
  ),
  KUBERNETES_RUNTIME_CLASS: variable(
    optional(nameOfA('RuntimeClass')),
    '',
    'runtimeClassName of the browsers, as gvisor; empty: the cluster’s own',
  ),
  KUBERNETES_USER_NAMESPACES: variable(
    yesOrNo,
    'no',
    'yes: each browser has its own user namespace (hostUsers: false)',
  ),
  KUBERNETES_DNS: variable(
    nameServers,
    '',
    'name servers of the browsers: a,b, or cluster; empty: those of the node',
  ),
  KUBERNETES_POD: variable(
    podFields,
    '{}',
    'JSON of further fields of the Pods: nodeSelector, tolerations, affinity, ' +
      'priorityClassName, imagePullSecrets, topologySpreadConstraints',
  ),
  KUBERNETES_OWNER: variable(
    optional(nameOfA('ConfigMap')),
    '',
    'ConfigMap in the browsers’ namespace that owns them: Kubernetes deletes them with ' +
      'it; empty: none',
  ),
  KUBERNETES_LAUNCH_TIMEOUT: variable(
    duration(),
    '2m',
    'longest launch of a browser, the start of a node included',
  ),
  KUBERNETES_LAUNCHES: variable(integer(1, 1_000), '10', 'launches of a server at once'),
  KUBERNETES_ON_SHUTDOWN: variable(
    optional(oneOf('stop', 'leave')),
    '',
    'the same as DOCKER_ON_SHUTDOWN',
  ),
  BROWSER_MEMORY_REQUEST_MB: variable(
    mebibytes(64, 1_048_576),
    '512',
    'memory that a node reserves for a browser',
  ),
  BROWSER_CPUS_REQUEST: variable(
    decimal(0.01, 1_024),
    '0.25',
    'cores that a node reserves for a browser',
  ),
} as const;
type Given = Values<typeof kubernetesVariables> & {
  NATS_URL: string | null;
  BROWSER_IMAGE: string | null;
};

/**
 * @param limits of one browser
 * @param filesBytes of one session
 * @throws BadConfig naming the variable that is wrong
 */
export function readKubernetes(
  values: Given,
  limits: { memoryBytes: number; cpus: number },
  filesBytes: number,
): KubernetesConfig {
  const { BROWSER_IMAGE: image } = values;
  if (image === null)
    throw new BadConfig(
      'BROWSER_IMAGE: BROWSERS=kubernetes needs an image that its nodes can pull',
    );
  const requested = {
    memoryBytes: values.BROWSER_MEMORY_REQUEST_MB,
    cpus: values.BROWSER_CPUS_REQUEST,
  };
  if (requested.memoryBytes > limits.memoryBytes)
    throw new BadConfig('BROWSER_MEMORY_REQUEST_MB: is more than BROWSER_MEMORY_MB');
  if (requested.cpus > limits.cpus)
    throw new BadConfig('BROWSER_CPUS_REQUEST: is more than BROWSER_CPUS');
  return {
    kubeconfig: values.KUBECONFIG,
    namespace: values.KUBERNETES_NAMESPACE,
    image,
    isolation: values.KUBERNETES_ISOLATION,
    seccomp: values.KUBERNETES_SECCOMP,
    runtimeClass: values.KUBERNETES_RUNTIME_CLASS,
    hasUserNamespace: values.KUBERNETES_USER_NAMESPACES,
    dns: values.KUBERNETES_DNS,
    more: values.KUBERNETES_POD,
    owner: values.KUBERNETES_OWNER,
    launchTimeoutMs: values.KUBERNETES_LAUNCH_TIMEOUT,
    launchesAtOnce: values.KUBERNETES_LAUNCHES,
    onShutdown: values.KUBERNETES_ON_SHUTDOWN ?? usualOnShutdown(values),
    limits: {
      ...limits,
      requested,
      // A file is written beside the one that it replaces.
      filesBytes: 2 * filesBytes,
    },
  };
}
