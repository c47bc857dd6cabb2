import type { V1ContainerState, V1ObjectMeta, V1Pod, V1PodStatus } from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import type { Fields } from '#src/browsers/kubernetes/naming.ts';
import { stateOf } from '#src/browsers/kubernetes/pod-state.ts';
import { toldOf } from '#src/browsers/kubernetes/own-pod.ts';

/** What Kubernetes 1.35 tells of Pods, and what of it is said of their browsers. */

const IMAGE = 'registry.example/browser:1';

function aPod(status: V1PodStatus, metadata: Fields<V1ObjectMeta> = {}): V1Pod {
  return {
    metadata: { name: 'browser-1', uid: 'u1', ...metadata },
    spec: { nodeName: 'node-1', containers: [{ name: 'browser', image: IMAGE }] },
    status,
  };
}

function withState(
  state: V1ContainerState,
  more: Fields<V1PodStatus> = {},
  metadata: Fields<V1ObjectMeta> = {},
): V1Pod {
  const container = { name: 'browser', image: IMAGE, imageID: '', ready: false, restartCount: 0 };
  const status = { phase: 'Running', containerStatuses: [{ ...container, state }], ...more };
  return aPod(status, metadata);
}

describe('a Pod that waits', () => {
  it('for a node says what the scheduler says', () => {
    const state = stateOf(
      aPod({
        phase: 'Pending',
        conditions: [
          {
            type: 'PodScheduled',
            status: 'False',
            reason: 'Unschedulable',
            message: '0/1 nodes are available: 1 Insufficient cpu.',
          },
        ],
      }),
    );
    expect(state).toMatchObject({
      phase: 'waiting',
      reason: 'Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.',
      isHopeless: false,
    });
  });

  it.each([
    ['InvalidImageName', true],
    ['ErrImageNeverPull', true],
    ['ErrImagePull', false],
    ['ImagePullBackOff', false],
    ['CreateContainerConfigError', false],
    ['CreateContainerError', false],
  ])('for its image or its container: %s, of which no waiting helps: %s', (reason, isHopeless) => {
    const state = stateOf(withState({ waiting: { reason, message: 'no such image' } }));
    expect(state).toMatchObject({ phase: 'waiting', reason: `${reason}: no such image` });
    expect(state).toMatchObject({ isHopeless, isFailing: !isHopeless });
  });

  it('for its container, as every Pod does, says nothing', () => {
    const state = stateOf(withState({ waiting: { reason: 'ContainerCreating' } }));
    expect(state).toMatchObject({ phase: 'waiting', reason: null, isHopeless: false });
  });
});

describe('a Pod that runs', () => {
  it('has an address', () => {
    const state = stateOf(withState({ running: {} }, { podIP: '10.85.0.7' }));
    expect(state).toMatchObject({ phase: 'running', address: '10.85.0.7', reason: null });
  });
});

describe('a Pod that has ended', () => {
  const finishedAt = new Date('2026-11-26T04:00:00Z');

  it.each([
    ['a crash', { exitCode: 133, reason: 'Error', finishedAt }, false, null],
    ['lack of memory', { exitCode: 137, reason: 'OOMKilled', finishedAt }, true, 'OOMKilled'],
  ])('by %s', (_, terminated, isOutOfMemory, reason) => {
    const state = stateOf(withState({ terminated }));
    const { exitCode } = terminated;
    const endedAt = finishedAt.getTime() + 999;
    expect(state).toMatchObject({ phase: 'ended', exitCode, isOutOfMemory, reason, endedAt });
  });

  it('because its node needed the room says so', () => {
    const status = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on memory.' };
    const state = stateOf(aPod(status));
    expect(state).toMatchObject({ phase: 'ended', exitCode: null });
    expect(state.reason).toBe('Evicted: The node was low on memory.');
    expect(toldOf({ ...state, ...ids })).toBe(
      'Kubernetes ended the Pod on the node node-1: Evicted: The node was low on memory.',
    );
  });

  it.each(['PreemptionByScheduler', 'EvictionByEvictionAPI', 'DeletionByTaintManager'])(
    'by a disruption says which: %s',
    (reason) => {
      const condition = { type: 'DisruptionTarget', status: 'True', reason, message: 'why' };
      const terminated = { exitCode: 143, finishedAt };
      const pod = withState({ terminated }, { conditions: [condition] });
      expect(stateOf(pod).reason).toBe(`${reason}: why`);
    },
  );

  it('is being deleted on a node that does not answer: its container runs, as far as is known', () => {
    const reason = 'DeletionByTaintManager';
    const condition = { type: 'DisruptionTarget', status: 'True', reason, message: 'deleting' };
    const gone = withState(
      { running: {} },
      { conditions: [condition] },
      { deletionTimestamp: finishedAt },
    );
    const state = stateOf(gone);
    expect(state).toMatchObject({ phase: 'running', isDeleted: true });
    expect(toldOf({ ...state, ...ids })).toBe(
      'Kubernetes ended the Pod on the node node-1: DeletionByTaintManager: deleting',
    );
  });

  it('because somebody deleted it has no reason', () => {
    const terminated = { exitCode: 143, reason: 'Error', finishedAt };
    const state = stateOf(withState({ terminated }, {}, { deletionTimestamp: finishedAt }));
    expect(state).toMatchObject({ phase: 'ended', isDeleted: true, reason: null });
    expect(toldOf({ ...state, ...ids })).toBe('The Pod was deleted on the node node-1');
  });
});

const ids = {
  workloadId: 'wl_1',
  serverId: 'srv_1',
  sessionId: null,
  image: IMAGE,
  isClosed: false,
};
