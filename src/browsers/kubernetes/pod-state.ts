import type { V1ContainerStatus, V1Pod, V1PodCondition } from '@kubernetes/client-node';
import { BROWSER, KEEPER } from './naming.ts';

/** What a Pod's status says of its browser. Pure. */
export type PodState = {
  /** The name by which the API server knows it, and which Pod of that name it is. */
  name: string;
  uid: string;
  /** Null: it has none yet. */
  address: string | null;
  node: string | null;
  /** `waiting`: not started; `running`; `ended`: its program has ended, or the Pod is gone. */
  phase: 'waiting' | 'running' | 'ended';
  /** Set where the Pod is being deleted. */
  isDeleted: boolean;
  /** Why it waits, or why it has ended, as Kubernetes tells; null: it does not tell. */
  reason: string | null;
  /** Whether the reason is one that no waiting changes. */
  isHopeless: boolean;
  /** Whether its container failed to start, which its node tries again. */
  isFailing: boolean;
  /** Null: it has not ended by itself. */
  exitCode: number | null;
  /** Whether the kernel has killed a program of it for lack of memory. */
  isOutOfMemory: boolean;
  /** The last millisecond since the epoch in which it can have ended; null: not known. */
  endedAt: number | null;
  /** Of the container that keeps its profile; null: it has none. */
  keeper: 'waiting' | 'running' | 'ended' | null;
};

/** Kubernetes tells times in whole seconds. */
const SECOND_MS = 1000;

/** Reasons of a container that waits which end a launch at once. */
const HOPELESS = new Set(['ErrImageNeverPull', 'InvalidImageName', 'ImageInspectError']);
/**
 * Those that may pass: a registry or a limit of pulls, a Secret that the node has not seen yet, the
 * seccomp profile that a new node does not have yet.
 */
const FAILING = new Set([
  'ImagePullBackOff',
  'ErrImagePull',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
]);

export function stateOf(pod: V1Pod): PodState {
  const { metadata, spec, status } = pod;
  const container = status?.containerStatuses?.find(({ name }) => name === BROWSER);
  const ended = container?.state?.terminated;
  const phase = phaseOf(pod, container);
  const finishedAt = ended?.finishedAt;
  const isDeleted = metadata?.deletionTimestamp !== undefined;
  const waitsFor = container?.state?.waiting?.reason ?? '';
  return {
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    address: status?.podIP ?? null,
    node: spec?.nodeName ?? null,
    phase,
    isDeleted,
    reason: phase === 'running' && !isDeleted ? null : reasonOf(pod, container),
    isHopeless: HOPELESS.has(waitsFor),
    isFailing: FAILING.has(waitsFor),
    exitCode: ended?.exitCode ?? null,
    isOutOfMemory: ended?.reason === 'OOMKilled',
    endedAt: finishedAt === undefined ? null : new Date(finishedAt).getTime() + SECOND_MS - 1,
    keeper: keeperOf(pod),
  };
}

function phaseOf({ status }: V1Pod, container: V1ContainerStatus | undefined): PodState['phase'] {
  if (status?.phase === 'Failed' || status?.phase === 'Succeeded') return 'ended';
  if (container?.state?.terminated !== undefined) return 'ended';
  return container?.state?.running === undefined ? 'waiting' : 'running';
}

function keeperOf({ spec, status }: V1Pod): PodState['keeper'] {
  if (spec?.containers.every(({ name }) => name !== KEEPER) !== false) return null;
  const { state } = status?.containerStatuses?.find(({ name }) => name === KEEPER) ?? {};
  if (state?.terminated !== undefined) return 'ended';
  return state?.running === undefined ? 'waiting' : 'running';
}

/**
 * `Evicted: The node was low on resource: memory.` and the like: of the Pod's end, its disruption,
 * its container, or its scheduling, whichever tells first.
 */
function reasonOf({ status }: V1Pod, container: V1ContainerStatus | undefined): string | null {
  const conditions = status?.conditions ?? [];
  const disruption = conditions.find((one) => one.type === 'DisruptionTarget' && isTrue(one));
  const scheduling = conditions.find((one) => one.type === 'PodScheduled' && !isTrue(one));
  return (
    told(status) ??
    told(disruption) ??
    told(container?.state?.waiting) ??
    told(container?.state?.terminated) ??
    told(scheduling)
  );
}

function isTrue({ status }: V1PodCondition): boolean {
  return status === 'True';
}

/** What a container that is still being made, or that has just ended, always says. */
const ORDINARY = new Set(['ContainerCreating', 'PodInitializing', 'Error', 'Completed']);

function told(one: { reason?: string; message?: string } | undefined): string | null {
  if (one?.reason === undefined || one.reason === '') return null;
  const message = one.message?.trim() ?? '';
  if (message === '') return ORDINARY.has(one.reason) ? null : one.reason;
  return `${one.reason}: ${message}`;
}
