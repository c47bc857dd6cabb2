import type {
  V1Container,
  V1OwnerReference,
  V1Pod,
  V1PodSpec,
  V1Secret,
  V1Volume,
} from '@kubernetes/client-node';
import { linkKeyText, type LinkKeys } from '#src/browsers/link/browser-link.ts';
import type { BrowserSpec } from '../browsers.ts';
import { chromiumEnvironment, chromiumFlags, extensionFlags } from '../chromium/flags.ts';
import { BROWSER, KEEPER, labelsOf, metadataOf, nameOf, RELAY_PORT } from './naming.ts';
import type { Fields } from './naming.ts';

/** What the Pods of all browsers of a server have in common. */
export type PodOptions = {
  image: string;
  serverId: string;
  /** `RuntimeDefault`, `Unconfined`, or the path of a profile below the kubelet's `seccomp`. */
  seccomp: string;
  /** Null: the cluster's own. */
  runtimeClass: string | null;
  /** Whether a Pod has a user namespace of its own. */
  hasUserNamespace: boolean;
  /** Name servers: the cluster's own, or by address; empty: those of the node. */
  dns: 'cluster' | readonly string[];
  limits: PodLimits;
  /** What an operator adds to the Pods: where they run, and what may pull their image. */
  more: PodAdditions;
  /** The keys of the browsers' links. */
  linkKeys: LinkKeys;
  /** With whose deletion Kubernetes deletes the browsers too; null: with nothing's. */
  owner: V1OwnerReference | null;
};

export type PodLimits = {
  memoryBytes: number;
  cpus: number;
  /** What the scheduler reserves. */
  requested: { memoryBytes: number; cpus: number };
  /** The most bytes that the files of a session take on the node's disk. */
  filesBytes: number;
};

export type PodAdditions = Pick<
  V1PodSpec,
  | 'nodeSelector'
  | 'tolerations'
  | 'affinity'
  | 'priorityClassName'
  | 'imagePullSecrets'
  | 'topologySpreadConstraints'
>;

const MIB = 1024 ** 2;
/** As in Docker's containers: Chromium's disk cache, its profile, and its shared memory. */
const TMP_BYTES = 512 * MIB;
const HOME_BYTES = 64 * MIB;
const SHM_BYTES = 256 * MIB;
/** A kept profile and extensions, which the service bounds itself. */
const DISK_BYTES = 2 * 1024 * MIB;

/** The user and group of all programs in a Pod. */
const USER = 1000;
/** `SIGTERM` ends Chromium within milliseconds. */
const GRACE_SECONDS = 2;
/** A Pod whose node is gone is given up after this; Kubernetes' own default is 300. */
const UNREACHABLE_SECONDS = 30;
/** An address that no host has: a Pod without a way out asks no name server. */
const NO_RESOLVER = '192.0.2.1';

const HOME = '/home/browser';
export const DOWNLOADS = `${HOME}/downloads`;
const PROFILE = '/profile';
/** Below the volume, whose own owner is root. */
export const PROFILE_DATA = `${PROFILE}/data`;
/** What the keeper fills before the browser starts; the browser cannot write there. */
const PREPARED = '/prepared';
export const EXTENSIONS = `${PREPARED}/extensions`;
/** The browser starts once this file is there. */
export const READY_FILE = `${PREPARED}/ready`;

/** Until the keeper has filled what the browser starts with. */
const UNTIL_PREPARED = `until [ -e ${READY_FILE} ]; do sleep 0.02; done; `;
/**
 * Becomes the image's own entrypoint, which reads the keys: in no environment of its programs are
 * they after this.
 */
const WITH_KEYS = 'exec env -u LINK_KEY -u VNC_PASSWORD "$@" <<<"$LINK_KEY"$\'\\n\'"$VNC_PASSWORD"';
const ENTRYPOINT = ['tini', '--', 'bash', '/usr/local/lib/browser/entrypoint.sh'];

/** The command of a container whose environment has the keys. */
export function browserCommand(isWaiting: boolean): string[] {
  const script = (isWaiting ? UNTIL_PREPARED : '') + WITH_KEYS;
  return ['bash', '-c', script, 'browser', ...ENTRYPOINT];
}

/** Whether a browser has something to be filled before its start. */
export function isPrepared({ extensions, profile }: BrowserSpec): boolean {
  return extensions !== undefined || profile !== undefined;
}

/** One browser's Pod. Pure. */
export function browserPod(options: PodOptions, spec: BrowserSpec): V1Pod {
  const { serverId, dns, owner } = options;
  const { workloadId } = spec;
  const isClosed = spec.egress !== undefined;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...metadataOf({ serverId, workloadId, isClosed }),
      ...(owner === null ? {} : { ownerReferences: [owner] }),
    },
    spec: {
      ...confined(options),
      hostname: 'browser',
      ...resolving(isClosed ? [NO_RESOLVER] : dns),
      containers: [
        browserContainer(options, spec),
        ...(isPrepared(spec) ? [keeperContainer(options)] : []),
      ],
      volumes: volumesOf(options, spec),
    },
  };
}

function browserContainer(options: PodOptions, spec: BrowserSpec): V1Container {
  const { limits } = options;
  const proxy = spec.egress === undefined ? null : RELAY_PORT;
  const profile =
    spec.profile === undefined
      ? []
      : [`--user-data-dir=${PROFILE_DATA}`, '--disk-cache-dir=/tmp/cache'];
  return {
    ...containerOf(options, BROWSER),
    command: browserCommand(isPrepared(spec)),
    args: [...profile, ...extensionFlags(spec, EXTENSIONS), ...chromiumFlags(spec, proxy)],
    env: [
      ...Object.entries(environmentOf(spec)).map(([name, value]) => ({ name, value })),
      ...['LINK_KEY', 'VNC_PASSWORD'].map((key) => ({
        name: key,
        valueFrom: { secretKeyRef: { name: nameOf(spec.workloadId), key } },
      })),
    ],
    resources: {
      requests: quantities(limits.requested),
      limits: quantities(limits),
    },
    volumeMounts: [
      { name: 'tmp', mountPath: '/tmp' },
      { name: 'shm', mountPath: '/dev/shm' },
      { name: 'home', mountPath: HOME },
      { name: 'downloads', mountPath: DOWNLOADS },
      ...(isPrepared(spec) ? [{ name: 'prepared', mountPath: PREPARED, readOnly: true }] : []),
      ...(spec.profile === undefined ? [] : [{ name: 'profile', mountPath: PROFILE }]),
    ],
  };
}

/**
 * Fills what a browser starts with, and stays until the Pod is deleted: through it the profile is
 * read when the browser has ended, as no program can be run in a container that has.
 */
function keeperContainer(options: PodOptions): V1Container {
  const small = { memoryBytes: 64 * MIB, cpus: 1 };
  return {
    ...containerOf(options, KEEPER),
    command: ['tini', '--', 'sleep', 'infinity'],
    resources: {
      requests: quantities({ memoryBytes: 8 * MIB, cpus: 0.01 }),
      limits: quantities(small),
    },
    volumeMounts: [
      { name: 'downloads', mountPath: DOWNLOADS },
      { name: 'prepared', mountPath: PREPARED },
      { name: 'profile', mountPath: PROFILE },
    ],
  };
}

function environmentOf(spec: BrowserSpec): Record<string, string> {
  const { width, height } = spec.screen;
  return {
    ...chromiumEnvironment(spec),
    SCREEN_SIZE: `${width}x${height}`,
    ...(spec.egress === undefined ? {} : { EGRESS: '1' }),
  };
}

function disk(name: string, bytes: number): V1Volume {
  return { name, emptyDir: { sizeLimit: `${bytes}` } };
}

function volumesOf({ limits }: PodOptions, spec: BrowserSpec): V1Volume[] {
  return [
    ...memoryVolumes(),
    // The kubelet evicts a Pod that writes more.
    disk('downloads', limits.filesBytes),
    ...(isPrepared(spec) ? [disk('prepared', DISK_BYTES), disk('profile', DISK_BYTES)] : []),
  ];
}

function memory(name: string, bytes: number): V1Volume {
  return { name, emptyDir: { medium: 'Memory', sizeLimit: `${bytes}` } };
}

/** They count towards the memory limit of the container that writes them. */
export function memoryVolumes(): V1Volume[] {
  return [memory('tmp', TMP_BYTES), memory('shm', SHM_BYTES), memory('home', HOME_BYTES)];
}

/** Confines code that breaks out of a page: an ordinary user without rights, on this node alone. */
export function confined(options: PodOptions): Omit<V1PodSpec, 'containers'> {
  const { seccomp, runtimeClass, hasUserNamespace, more } = options;
  const gone = ['not-ready', 'unreachable'].map((condition) => ({
    key: `node.kubernetes.io/${condition}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: UNREACHABLE_SECONDS,
  }));
  return {
    ...more,
    tolerations: [...gone, ...(more.tolerations ?? [])],
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: GRACE_SECONDS,
    automountServiceAccountToken: false,
    // The addresses of all Services of the namespace are none of a browser's business.
    enableServiceLinks: false,
    ...(runtimeClass === null ? {} : { runtimeClassName: runtimeClass }),
    ...(hasUserNamespace ? { hostUsers: false } : {}),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      // The volumes are root's; this group may write them.
      fsGroup: USER,
      seccompProfile: seccompOf(seccomp),
    },
  };
}

function seccompOf(profile: string): { type: string; localhostProfile?: string } {
  if (profile === 'RuntimeDefault' || profile === 'Unconfined') return { type: profile };
  return { type: 'Localhost', localhostProfile: profile };
}

export function containerOf({ image }: PodOptions, name: string): Fields<V1Container> {
  return {
    name,
    image,
    imagePullPolicy: 'IfNotPresent',
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
  };
}

export function resolving(servers: PodOptions['dns']): Pick<V1PodSpec, 'dnsPolicy' | 'dnsConfig'> {
  // A name with a dot is asked for as it stands: no other question carries it to the cluster.
  if (servers === 'cluster')
    return {
      dnsPolicy: 'ClusterFirst',
      dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
    };
  // The node's own name servers: no name of the cluster is a browser's business.
  if (servers.length === 0) return { dnsPolicy: 'Default' };
  return { dnsPolicy: 'None', dnsConfig: { nameservers: [...servers] } };
}

export function quantities({ memoryBytes, cpus }: { memoryBytes: number; cpus: number }) {
  return { memory: `${memoryBytes}`, cpu: `${Math.round(cpus * 1000)}m` };
}

/**
 * What only the browser and the service know. The Pod reads it once, at its start; it is deleted
 * then: a user who may read the namespace's Secrets finds it for a second only. It belongs to its
 * Pod: of a launch that was killed in the middle Kubernetes deletes it, with the Pod.
 */
export function browserSecret(
  { linkKeys, serverId }: Pick<PodOptions, 'linkKeys' | 'serverId'>,
  { workloadId, vncPassword, headless }: BrowserSpec,
  podUid: string,
): V1Secret {
  const name = nameOf(workloadId);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      labels: labelsOf(serverId),
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid: podUid }],
    },
    immutable: true,
    stringData: {
      LINK_KEY: linkKeyText(linkKeys(workloadId)),
      // Without a password entrypoint.sh starts no X server.
      VNC_PASSWORD: headless === true ? '' : vncPassword,
    },
  };
}
