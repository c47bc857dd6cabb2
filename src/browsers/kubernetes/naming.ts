import { hash } from 'node:crypto';
import type { V1ObjectMeta, V1Pod } from '@kubernetes/client-node';

/**
 * The names, labels and annotations by which this process, and the next one after a crash, finds
 * its Pods. A label joins a running Pod, so a browser gets the label of its session when it is
 * assigned to one. NetworkPolicies select by `role` and `egress`.
 */

/** An object of Kubernetes as a plain one, of which the client makes one of its classes. */
export type Fields<Model> = { [Name in keyof Model]: Model[Name] };

const OWNER = 'browser-session-service';
export const ROLE = `${OWNER}/role`;
const SERVER = `${OWNER}/server`;
const WORKLOAD = `${OWNER}/workload`;
const SESSION = `${OWNER}/session`;
/** `open`, or `closed` for a Pod whose only way out is its proxy. */
export const EGRESS = `${OWNER}/egress`;
/** Autoscalers of nodes: Cluster Autoscaler, and Karpenter. */
const SAFE_TO_EVICT = 'cluster-autoscaler.kubernetes.io/safe-to-evict';
const DO_NOT_DISRUPT = 'karpenter.sh/do-not-disrupt';

/** The names of the containers: the browser's own, and the one that keeps its profile. */
export const BROWSER = 'browser';
export const KEEPER = 'keeper';

/** The ports of CDP, of VNC and of the proxy's connections inside a Pod. */
export const CDP_PORT = 9223;
export const VNC_PORT = 5900;
export const EGRESS_PORT = 9226;
/** WebDriver, through the link, and where that finds Chromium. */
const WEBDRIVER_PORT = 9227;
const CHROMIUM_PORT = 9222;

/** The WebDriver of the Pod at this address. */
export function webdriverAt(host: string) {
  return { host, port: WEBDRIVER_PORT, cdpPort: CHROMIUM_PORT };
}

/** Where Chromium finds its proxy. */
export const RELAY_PORT = 3128;

/** A Pod's name and its Secret's: names are lower case, and ids are not. */
export function nameOf(workloadId: string): string {
  return `browser-${hash('sha256', workloadId, 'hex').slice(0, 20)}`;
}

/** The name of a Pod of the isolation's check. */
export function probeName(id: string): string {
  return `browser-probe-${hash('sha256', id, 'hex').slice(0, 20)}`;
}

/**
 * An id as a label: that ends with a letter or digit, and an id with some other character in one of
 * 32 cases. The annotation has the whole id.
 */
export function labelOf(id: string): string {
  return id.replace(/[^A-Za-z0-9]+$/, '');
}

export function metadataOf(workload: {
  serverId: string;
  workloadId: string;
  isClosed: boolean;
}): Fields<V1ObjectMeta> {
  const { serverId, workloadId, isClosed } = workload;
  return {
    name: nameOf(workloadId),
    labels: {
      ...labelsOf(serverId),
      [WORKLOAD]: labelOf(workloadId),
      [EGRESS]: isClosed ? 'closed' : 'open',
    },
    annotations: { [WORKLOAD]: workloadId, [SERVER]: serverId, ...evictable(true) },
  };
}

/** The labels of the Pods and Secrets of a server's browsers. */
export function labelsOf(serverId: string): Record<string, string> {
  return { ...ownLabels('browser'), [SERVER]: labelOf(serverId) };
}

/** The labels of any Pod or Secret of the service, of one role. */
export function ownLabels(role: 'browser' | 'probe'): Record<string, string> {
  return { 'app.kubernetes.io/name': OWNER, [ROLE]: role };
}

/** The change that joins a session to its Pod: no autoscaler ends a Pod with one. */
export function assignment(sessionId: string): Pick<V1Pod, 'metadata'> {
  return {
    metadata: {
      labels: { [SESSION]: labelOf(sessionId) },
      annotations: { [SESSION]: sessionId, ...evictable(false) },
    },
  };
}

function evictable(isEvictable: boolean): Record<string, string> {
  return { [SAFE_TO_EVICT]: String(isEvictable), [DO_NOT_DISRUPT]: String(!isEvictable) };
}

/** Selects the browsers of a server, or of all servers (null). */
export function selectorFor(serverId: string | null): string {
  const all = `app.kubernetes.io/name=${OWNER},${ROLE}=browser`;
  return serverId === null ? all : `${all},${SERVER}=${labelOf(serverId)}`;
}

/** Selects the Pods of all checks. */
export function probeSelector(): string {
  return `app.kubernetes.io/name=${OWNER},${ROLE}=probe`;
}

/** The ids in a Pod's annotations; null: it is no browser of the service. */
export function idsOf({ metadata }: Pick<V1Pod, 'metadata'>): {
  workloadId: string;
  serverId: string;
  sessionId: string | null;
} | null {
  const {
    [WORKLOAD]: workloadId,
    [SERVER]: serverId,
    [SESSION]: sessionId,
  } = metadata?.annotations ?? {};
  if (workloadId === undefined || serverId === undefined) return null;
  return { workloadId, serverId, sessionId: sessionId ?? null };
}
