import type {
  ConfigurationOptions,
  CoreV1Api,
  KubeConfig,
  RequestContext,
  ResponseContext,
  Watch,
} from '@kubernetes/client-node';
import { retry } from '#src/kernel/async/retry.ts';
import { withPackages } from '#src/kernel/optional-package.ts';

/** A Kubernetes API server that answers, and the namespace of the browsers. */
export type Cluster = {
  api: CoreV1Api;
  config: KubeConfig;
  watch: Watch;
  namespace: string;
  /** A time limit for one request; it is the request's second argument. */
  bounded: (signal?: AbortSignal, withinMs?: number) => ConfigurationOptions;
  /** The same for a change of some fields (a JSON merge patch). */
  patch: () => ConfigurationOptions;
};

/** Browsers cannot run as Pods; the message begins with the variable that would help. */
export class KubernetesUnavailable extends Error {
  override readonly name = 'KubernetesUnavailable';
}

export type ClusterOptions = {
  /** A kubeconfig file; null: the service account of this Pod, `KUBECONFIG` or `~/.kube/config`. */
  kubeconfig: string | null;
  /** Null: that of the service account or of the kubeconfig's context, else `default`. */
  namespace: string | null;
  signal?: AbortSignal | undefined;
};

/** How long a start waits for an API server that restarts or starts at the same time. */
const START_WITHIN_MS = 10_000;
const START_RETRY_MS = 250;
const FIRST_ANSWER_MS = 5_000;
/** The longest wait for the answer to any other request. */
const ANSWER_MS = 30_000;

/**
 * @throws KubernetesUnavailable if no API server answers within some 10 s, or refuses
 * @throws PackageMissing
 */
export async function connectCluster(options: ClusterOptions): Promise<Cluster> {
  // A server of other browsers starts without it: with its models it takes a second to load.
  const client = await withPackages(
    ['@kubernetes/client-node'],
    'BROWSERS=kubernetes',
    () => import('@kubernetes/client-node'),
  );
  const config = new client.KubeConfig();
  try {
    if (options.kubeconfig === null) config.loadFromDefault();
    else config.loadFromFile(options.kubeconfig);
  } catch (error) {
    throw new KubernetesUnavailable(`KUBECONFIG: ${messageOf(error)}`, { cause: error });
  }
  const context = config.getContextObject(config.getCurrentContext());
  const namespace = options.namespace ?? context?.namespace ?? 'default';
  const watch = new client.Watch(config);
  const post = (response: ResponseContext) => new client.Observable(Promise.resolve(response));
  /** Changes a request before it is sent. */
  function before(change: (request: RequestContext) => void): ConfigurationOptions {
    const pre = (request: RequestContext) => {
      change(request);
      return new client.Observable(Promise.resolve(request));
    };
    return { middleware: [{ pre, post }], middlewareMergeStrategy: 'append' };
  }
  const cluster: Cluster = {
    api: config.makeApiClient(client.CoreV1Api),
    config,
    watch,
    namespace,
    bounded(signal, withinMs = ANSWER_MS) {
      const late = AbortSignal.timeout(withinMs);
      const ends = signal === undefined ? late : AbortSignal.any([signal, late]);
      return before((request) => request.setSignal(ends));
    },
    patch: () =>
      before((request) => {
        request.setSignal(AbortSignal.timeout(ANSWER_MS));
        request.setHeaderParam('Content-Type', client.PatchStrategy.MergePatch);
      }),
  };
  await firstAnswer(cluster, options.signal);
  return cluster;
}

async function firstAnswer(cluster: Cluster, signal?: AbortSignal): Promise<void> {
  const { api, namespace, config } = cluster;
  const options = {
    withinMs: START_WITHIN_MS,
    pauseMs: () => START_RETRY_MS,
    // A refusal stays one.
    isTransient: (error: unknown) => statusOf(error) === null || Number(statusOf(error)) >= 500,
    signal,
  };
  try {
    await retry(options, () =>
      api.listNamespacedPod({ namespace, limit: 1 }, cluster.bounded(signal, FIRST_ANSWER_MS)),
    );
  } catch (error) {
    signal?.throwIfAborted();
    const at = config.getCurrentCluster()?.server ?? 'no address';
    const status = statusOf(error);
    throw new KubernetesUnavailable(
      status === null
        ? `KUBECONFIG: no Kubernetes API server answers at ${at} (${messageOf(error)}). Name the ` +
            'file of another in KUBECONFIG, or set BROWSERS=docker.'
        : `KUBERNETES_NAMESPACE: the API server refuses to list the Pods of ${namespace} ` +
            `(${messageOf(error)}).`,
      { cause: error },
    );
  }
}

/** Whether the API server answers now. */
export async function isAnswering({ api, namespace, bounded }: Cluster): Promise<boolean> {
  try {
    await api.listNamespacedPod({ namespace, limit: 1 }, bounded(undefined, FIRST_ANSWER_MS));
    return true;
  } catch (error) {
    return statusOf(error) !== null;
  }
}

/** The HTTP status of the API server's refusal; null where it did not answer. */
export function statusOf(error: unknown): number | null {
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  const status = code ?? statusCode;
  // The code of an aborted request's error is a number below.
  return typeof status === 'number' && status >= 100 ? status : null;
}

/** The API server's own message, or that of the error. */
export function messageOf(error: unknown): string {
  const { body, message, cause } = error as { body?: unknown; message?: string; cause?: Error };
  const told = typeof body === 'string' ? parsed(body) : body;
  const said = (told as { message?: unknown } | null)?.message;
  if (typeof said === 'string') return said;
  // Node's fetch says `fetch failed`, and its cause why.
  return cause instanceof Error ? `${message}: ${cause.message}` : String(message ?? error);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
