import type { BrowserSpec } from '#src/provisioner/browsers/browsers.ts';
import { hasDocker } from '#test/support/servers/docker-engine.ts';
import { openDockerBrowsers } from './docker-browsers.fixture.ts';
import { openProcessBrowsers, openSimulatedBrowsers } from './browsers.fixture.ts';
import type { OpenedBrowsers } from './browsers.fixture.ts';

/** An adapter of the port, as the suites that hold for all of them open it. */
type Adapter = {
  adapter: 'docker' | 'process' | 'simulated';
  open(): Promise<OpenedBrowsers>;
  /** Browsers that cannot be launched. */
  openFailing(): Promise<OpenedBrowsers>;
};

const dockerAdapter: Adapter = {
  adapter: 'docker',
  // Published: an address that is nobody's any more keeps who dials it waiting for three seconds.
  open: () => openDockerBrowsers({ publish: '127.0.0.1' }),
  // No browser is that fast.
  openFailing: () => openDockerBrowsers({ launchTimeoutMs: 50 }),
};

export const adapters: Adapter[] = [
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

let launches = 0;

/** A workload nobody has had before. */
export function aSpec(changes: Partial<BrowserSpec> = {}): BrowserSpec {
  launches += 1;
  return {
    workloadId: `wl_contract_${process.pid}_${launches}`,
    vncPassword: 'pass0rd1',
    screen: { width: 1024, height: 768 },
    ...changes,
  };
}
