import { randomUUID } from 'node:crypto';
import type { V1EnvVar, V1Pod } from '@kubernetes/client-node';
import { retry } from '#src/kernel/async/retry.ts';
import { messageOf, statusOf, type Cluster } from './cluster.ts';
import { BROWSER, EGRESS, ownLabels, probeName, probeSelector } from './naming.ts';
import { confined, containerOf, memoryVolumes, quantities, resolving } from './pod.ts';
import type { PodOptions } from './pod.ts';
import { stateOf, type PodState } from './pod-state.ts';
import { removePod } from './remove.ts';

/** Short-lived Pods that run a script in the image, confined as a browser is. */

export type Probe = {
  /** Which network policy it is under: a browser's, or that of no browser (null). */
  egress: 'open' | 'closed' | null;
  script: string;
  args?: readonly string[];
  env?: readonly V1EnvVar[];
};

/** The Pod ends by itself, in case this process is killed before it deletes it. */
const LIVES_SECONDS = 120;
const POLL_MS = 100;
const MIB = 1024 ** 2;

/** Removes the Pods of checks whose process ended before it had removed them. */
export async function removeLeftProbes(cluster: Cluster): Promise<void> {
  const { api, namespace, bounded } = cluster;
  const labelSelector = probeSelector();
  const { items } = await api.listNamespacedPod({ namespace, labelSelector }, bounded());
  const since = Date.now() - 2 * LIVES_SECONDS * 1000;
  const left = items.filter(({ metadata }) => Number(metadata?.creationTimestamp) < since);
  await Promise.all(left.map(({ metadata }) => removePod(cluster, metadata?.name ?? '')));
}

/** The output of a probe that has ended. @throws Error saying why it has none */
export async function runProbe(
  cluster: Cluster,
  options: PodOptions,
  probe: Probe,
): Promise<string[]> {
  await using pod = await startProbe(cluster, options, probe);
  const state = await pod.until(({ phase }) => phase === 'ended');
  if (state.exitCode !== 0)
    throw new Error(`the Pod of a check ended with ${state.exitCode}: ${state.reason ?? ''}`);
  return pod.lines();
}

export type RunningProbe = AsyncDisposable & {
  /** Resolves with its state once that is as wanted. @throws Error where it never will be */
  until(isWanted: (state: PodState) => boolean): Promise<PodState>;
  lines(): Promise<string[]>;
};

export async function startProbe(
  cluster: Cluster,
  options: PodOptions,
  probe: Probe,
): Promise<RunningProbe> {
  const { api, namespace, bounded } = cluster;
  const body = probePod(options, probe);
  const name = body.metadata?.name ?? '';
  await api.createNamespacedPod({ namespace, body }, bounded());
  const waiting = new Error(`the Pod of a check did not start within ${LIVES_SECONDS} s`);
  let last: PodState | null = null;
  return {
    async until(isWanted) {
      const pause = {
        withinMs: LIVES_SECONDS * 1000,
        pauseMs: () => POLL_MS,
        isTransient: (error: unknown) => error === waiting,
      };
      try {
        return await retry(pause, async () => {
          const state = stateOf(await api.readNamespacedPod({ name, namespace }, bounded()));
          last = state;
          if (isWanted(state)) return state;
          if (state.isHopeless || state.isFailing)
            throw new Error(`the Pod of a check cannot start: ${state.reason}`);
          if (state.phase === 'ended') throw new Error(`the Pod of a check ended: ${state.reason}`);
          throw waiting;
        });
      } catch (error) {
        if (error !== waiting) throw error;
        throw new Error(`${waiting.message}: ${last?.reason ?? 'without a reason'}`, {
          cause: error,
        });
      }
    },
    async lines() {
      const text = await api.readNamespacedPodLog({ name, namespace }, bounded());
      return text.split('\n').filter(Boolean);
    },
    async [Symbol.asyncDispose]() {
      await removePod(cluster, name).catch((error: unknown) => {
        // It ends by itself, and a later check removes it.
        if (statusOf(error) === null) throw new Error(messageOf(error), { cause: error });
      });
    },
  };
}

function probePod(options: PodOptions, { egress, script, args = [], env = [] }: Probe): V1Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: probeName(randomUUID()),
      ...(options.owner === null ? {} : { ownerReferences: [options.owner] }),
      labels: { ...ownLabels('probe'), ...(egress === null ? {} : { [EGRESS]: egress }) },
    },
    spec: {
      ...confined(options),
      ...resolving(options.dns),
      activeDeadlineSeconds: LIVES_SECONDS,
      containers: [
        {
          ...containerOf(options, BROWSER),
          command: ['bash', '-c', script, 'probe'],
          args: [...args],
          env: [...env],
          resources: {
            requests: quantities({ memoryBytes: 32 * MIB, cpus: 0.05 }),
            limits: quantities({ memoryBytes: 512 * MIB, cpus: 1 }),
          },
          volumeMounts: [
            { name: 'tmp', mountPath: '/tmp' },
            { name: 'home', mountPath: '/home/browser' },
          ],
        },
      ],
      volumes: memoryVolumes().filter(({ name }) => name !== 'shm'),
    },
  };
}
