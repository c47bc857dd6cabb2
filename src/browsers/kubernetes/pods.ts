import type { V1Pod } from '@kubernetes/client-node';
import { createBackOff } from '#src/kernel/async/back-off.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { statusOf, type Cluster } from './cluster.ts';
import { EGRESS, idsOf } from './naming.ts';
import { stateOf, type PodState } from './pod-state.ts';

/** A browser's Pod as the API server tells of it. */
export type BrowserPod = PodState & {
  workloadId: string;
  serverId: string;
  sessionId: string | null;
  image: string;
  isClosed: boolean;
};

export type PodHandlers = {
  /** A Pod has changed, or was there when the watch began. */
  onChange(pod: BrowserPod): void;
  /** A Pod is gone, with its last state. */
  onGone(pod: BrowserPod): void;
  /** All Pods have been listed, and the watch begins or goes on. Never rejects. */
  onConnected(): Promise<void>;
  /** The API server does not answer. */
  onDisconnected(error: unknown): void;
};

export type PodWatcher = AsyncDisposable & {
  /** The last known state of a workload's Pod; null: there is none. */
  get(workloadId: string): BrowserPod | null;
  /** Begins anew, where the API server may be away. */
  reconnect(): void;
};

/** Lists the browsers' Pods that a selector selects, of the newest state. */
export async function listPods(
  { api, namespace, bounded }: Cluster,
  labelSelector: string,
): Promise<BrowserPod[]> {
  const { items } = await api.listNamespacedPod({ namespace, labelSelector }, bounded());
  return items.map(browserPodOf).filter((pod) => pod !== null);
}

/** Null: it is no browser of the service. */
export function browserPodOf(pod: V1Pod): BrowserPod | null {
  const ids = idsOf(pod);
  if (ids === null) return null;
  return {
    ...stateOf(pod),
    ...ids,
    image: pod.spec?.containers[0]?.image ?? '',
    isClosed: pod.metadata?.labels?.[EGRESS] === 'closed',
  };
}

/** The server ends a watch after this; the next one goes on where it ended. */
const WATCH_SECONDS = 300;
/** A server, or a proxy before it, that ends watches sooner is not asked again without a pause. */
const WATCH_SHORT_MS = 1_000;
/** The version that a watch asked for is no longer kept. */
const GONE = 410;

/**
 * Follows the Pods that a selector selects: a list, then a watch from its version on, and a new
 * list after each failure and where that version is no longer kept. Resolves once the first watch
 * is to begin: no change is missed from then on.
 */
export async function watchPods(
  cluster: Cluster,
  labelSelector: string,
  handlers: PodHandlers,
): Promise<PodWatcher> {
  const stop = new AbortController();
  const known = new KnownPods(handlers);
  const begun = Promise.withResolvers<void>();
  /** Aborts the watch under way. */
  let current = new AbortController();

  async function list(): Promise<string> {
    const { api, namespace, bounded } = cluster;
    const { items, metadata } = await api.listNamespacedPod(
      { namespace, labelSelector },
      bounded(stop.signal),
    );
    known.replaceAll(items.map(browserPodOf).filter((pod) => pod !== null));
    return metadata?.resourceVersion ?? '';
  }
  async function follow(): Promise<void> {
    const backOff = createBackOff();
    while (!stop.signal.aborted) {
      current = new AbortController();
      const signal = AbortSignal.any([stop.signal, current.signal]);
      let watchedFrom: number | null = null;
      const wasLong = () =>
        watchedFrom !== null && performance.now() - watchedFrom > WATCH_SHORT_MS;
      try {
        let version = await list();
        begun.resolve();
        // Not awaited: what it checks takes seconds, in which browsers end, too.
        void handlers.onConnected();
        while (!signal.aborted) {
          watchedFrom = performance.now();
          version = await watchFrom(cluster, { labelSelector, version, signal }, known);
          if (wasLong()) backOff.reset();
          else await sleep(backOff.nextMs(), signal, { ref: false });
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        begun.reject(error);
        if (wasLong()) backOff.reset();
        // The server keeps changes for some minutes; and a watch that was silent for half a minute
        // may have no server any more, which the list will show.
        const isSilent = watchedFrom !== null && (error as Error).name === 'TimeoutError';
        if (current.signal.aborted || statusOf(error) === GONE || isSilent) continue;
        handlers.onDisconnected(error);
        await sleep(backOff.nextMs(), stop.signal, { ref: false });
      }
    }
  }
  const ended = follow();
  await begun.promise;
  return {
    get: (workloadId) => known.get(workloadId),
    reconnect: () => current.abort(),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
    },
  };
}

/** The Pods as they were last told, by workload. */
class KnownPods {
  readonly #pods = new Map<string, BrowserPod>();
  readonly #handlers: Pick<PodHandlers, 'onChange' | 'onGone'>;

  constructor(handlers: Pick<PodHandlers, 'onChange' | 'onGone'>) {
    this.#handlers = handlers;
  }

  get(workloadId: string): BrowserPod | null {
    return this.#pods.get(workloadId) ?? null;
  }

  changed(pod: BrowserPod): void {
    const before = this.#pods.get(pod.workloadId);
    // Another Pod of the name: the one before is gone.
    if (before !== undefined && before.uid !== pod.uid) this.#handlers.onGone(before);
    this.#pods.set(pod.workloadId, pod);
    this.#handlers.onChange(pod);
  }

  gone(pod: BrowserPod): void {
    this.#pods.delete(pod.workloadId);
    this.#handlers.onGone(pod);
  }

  replaceAll(pods: readonly BrowserPod[]): void {
    const uids = new Set(pods.map(({ uid }) => uid));
    for (const pod of this.#pods.values()) if (!uids.has(pod.uid)) this.gone(pod);
    for (const pod of pods) this.changed(pod);
  }
}

/**
 * Tells of changes from a version on, until the server ends the watch.
 * @returns the version to go on from
 * @throws the server's refusal, with its `statusCode`; an Error where the connection broke, or the
 * signal aborted
 */
async function watchFrom(
  cluster: Cluster,
  given: { labelSelector: string; version: string; signal: AbortSignal },
  known: KnownPods,
): Promise<string> {
  const { labelSelector, signal } = given;
  let { version } = given;
  const ended = Promise.withResolvers<void>();
  const query = {
    labelSelector,
    resourceVersion: version,
    allowWatchBookmarks: true,
    timeoutSeconds: WATCH_SECONDS,
  };
  function tell(type: string, object: V1Pod & { code?: number; message?: string }): void {
    if (type === 'ERROR') {
      const refusal = Object.assign(new Error(object.message), { statusCode: object.code });
      return ended.reject(refusal);
    }
    version = object.metadata?.resourceVersion ?? version;
    const pod = type === 'BOOKMARK' ? null : browserPodOf(object);
    if (pod === null) return;
    if (type === 'DELETED') known.gone(pod);
    else known.changed(pod);
  }
  const end = (error: unknown) => (error == null ? ended.resolve() : ended.reject(error));
  const path = `/api/v1/namespaces/${cluster.namespace}/pods`;
  const watch = await cluster.watch.watch(path, query, tell, end);
  const abort = () => watch.abort();
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    await ended.promise;
    return version;
  } finally {
    signal.removeEventListener('abort', abort);
    abort();
  }
}
