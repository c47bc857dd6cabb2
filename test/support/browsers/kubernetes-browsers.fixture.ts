import { createLinkKeys } from '#src/browsers/link/browser-link.ts';
import { nameOf, selectorFor } from '#src/browsers/kubernetes/naming.ts';
import { browsersAt } from '#src/browsers/kubernetes/pod-browsers.ts';
import type { KubernetesOptions } from '#src/browsers/kubernetes/pod-browsers.ts';
import { openSite, type KubernetesSite } from '#src/browsers/kubernetes/site.ts';
import {
  kubeconfig,
  kubectl,
  loadedImage,
  testNamespace,
} from '#test/support/kubernetes/cluster.ts';
import type { OpenedBrowsers } from './browsers.fixture.ts';
import { MASTER_KEY } from './docker-browsers.fixture.ts';

const MIB = 1024 ** 2;
let opened = 0;

/** Options of a test's browsers in Pods; each call is for another server. */
export function kubernetesOptions(changes: Partial<KubernetesOptions> = {}): KubernetesOptions {
  opened += 1;
  return {
    kubeconfig: kubeconfig(),
    namespace: testNamespace(),
    serverId: `srv_test_${process.pid}_${opened}`,
    image: loadedImage(),
    isolation: 'best-effort',
    seccomp: 'browser-session-service.json',
    runtimeClass: null,
    hasUserNamespace: false,
    dns: [],
    limits: {
      memoryBytes: 1024 * MIB,
      cpus: 2,
      requested: { memoryBytes: 128 * MIB, cpus: 0.05 },
      filesBytes: 1024 * MIB,
    },
    more: {},
    owner: null,
    linkKeys: createLinkKeys(Buffer.from(MASTER_KEY)),
    launchTimeoutMs: 120_000,
    log: { info: () => {}, warn: console.warn },
    ...changes,
  };
}

/** The namespace is prepared once per process of tests; the other options are per server. */
let ready: Promise<KubernetesSite> | null = null;

export async function openKubernetesBrowsers(
  changes: Partial<KubernetesOptions> = {},
): Promise<OpenedBrowsers & { options: KubernetesOptions }> {
  // A test changes them after this, so they are the Pods' own.
  const options = { ...kubernetesOptions(changes), owner: null };
  ready ??= openSite(options);
  const browsers = await browsersAt({ ...(await ready), pods: options }, options);
  const { serverId } = options;
  return {
    browsers,
    options,
    traces: () => tracesOf(serverId),
    crash: (workloadId) => killAll(workloadId),
    [Symbol.asyncDispose]: async () => {
      await browsers[Symbol.asyncDispose]();
      kubectl('delete', 'pods', '--selector', selectorFor(serverId), '--wait=true');
    },
  };
}

/** The names of the Pods and Secrets of a server's browsers. */
function tracesOf(serverId: string): string[] {
  const selector = selectorFor(serverId);
  const listed = kubectl('get', 'pods,secrets', '--selector', selector, '--output', 'name');
  return listed.split('\n').filter(Boolean);
}

/** Ends all programs of a browser but the first, which ends with its child's code. */
function killAll(workloadId: string): void {
  const command = ['exec', nameOf(workloadId), '--container', 'browser', '--'];
  try {
    kubectl(...command, 'bash', '-c', 'kill -KILL -1');
  } catch {
    // The program that kills may end with the container.
  }
}
