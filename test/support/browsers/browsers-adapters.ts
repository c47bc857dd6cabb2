import type { Browsers, BrowserSpec } from '#src/browsers/browsers.ts';
import { isOnKubernetes } from '#test/support/kubernetes/cluster.ts';
import { hasDocker } from '#test/support/servers/docker-engine.ts';
import { openDockerBrowsers } from './docker-browsers.fixture.ts';
import { openKubernetesBrowsers } from './kubernetes-browsers.fixture.ts';
import { openProcessBrowsers, openSimulatedBrowsers } from './browsers.fixture.ts';
import type { OpenedBrowsers } from './browsers.fixture.ts';

/** An adapter of the port, for the contract suites. */
export type Adapter = {
  adapter: Browsers['kind'];
  open(): Promise<OpenedBrowsers>;
  /** Browsers that cannot be launched. */
  openFailing(): Promise<OpenedBrowsers>;
};

export const dockerAdapter: Adapter = {
  adapter: 'docker',
  // Published, since dialling the address of a removed container takes three seconds to fail.
  open: () => openDockerBrowsers({ publish: '127.0.0.1' }),
  // No browser is ready within 50 ms.
  openFailing: () => openDockerBrowsers({ launchTimeoutMs: 50 }),
};

const kubernetesAdapter: Adapter = {
  adapter: 'kubernetes',
  open: () => openKubernetesBrowsers(),
  openFailing: () => openKubernetesBrowsers({ launchTimeoutMs: 50 }),
};

/** Those of `npm test`; `npm run test:kubernetes` has the one of Kubernetes alone. */
const others: Adapter[] = [
  ...(hasDocker() ? [dockerAdapter] : []),
  {
    adapter: 'process',
    open: openProcessBrowsers,
    openFailing: () => openProcessBrowsers({ chromium: '/bin/false' }),
  },
  {
    adapter: 'simulated',
    open: () => openSimulatedBrowsers(),
    openFailing: () => openSimulatedBrowsers(1),
  },
];

export const adapters: Adapter[] = isOnKubernetes() ? [kubernetesAdapter] : others;

let launches = 0;

/** The specification of a browser with a new workload id. */
export function aSpec(changes: Partial<BrowserSpec> = {}): BrowserSpec {
  launches += 1;
  return {
    workloadId: `wl_contract_${process.pid}_${launches}`,
    vncPassword: 'pass0rd1',
    screen: { width: 1024, height: 768 },
    ...changes,
  };
}
