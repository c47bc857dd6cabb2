import { describe, expect, onTestFinished, test } from 'vitest';
import { checkIsolation } from '#src/browsers/docker/isolation.ts';
import { connectEngine } from '#src/browsers/docker/engine.ts';
import { ensureNetwork } from '#src/browsers/docker/network.ts';
import { openSite } from '#src/browsers/docker/site.ts';
import {
  dockerOptions,
  openDockerBrowsers,
} from '#test/support/browsers/docker-browsers.fixture.ts';
import {
  docker,
  dockerHost,
  hasDocker,
  removeNetwork,
  testNetwork,
} from '#test/support/servers/docker-engine.ts';

describe.runIf(hasDocker())('the sessions’ network', () => {
  test('is created once by services that start at the same time', async () => {
    const name = `${testNetwork()}-rivals`;
    const listed = () => docker('network', 'ls', '-q', '--filter', `name=^${name}$`).split('\n');
    onTestFinished(() => void docker('network', 'rm', ...listed()));
    const services = await Promise.all(Array.from({ length: 8 }, () => connectEngine(dockerHost)));
    const made = await Promise.all(services.map((one) => ensureNetwork(one.docker, name)));
    expect(new Set(made.map((network) => network.bridge)).size).toBe(1);
    expect(listed()).toHaveLength(1);
    expect(await ensureNetwork(services[0]!.docker, name)).toEqual(made[0]);
  });

  test('gives an address that was freed to no other browser at once', async () => {
    await using opened = await openDockerBrowsers();
    const seen: string[] = [];
    for (const at of [1, 2, 3]) {
      const workloadId = `wl_address_${process.pid}_${at}`;
      const screen = { width: 800, height: 600 };
      const launched = { workloadId, vncPassword: 'aB3dE6gH', screen, headless: true };
      seen.push((await opened.browsers.launch(launched)).cdp.host);
      await opened.browsers.stop(workloadId);
    }
    expect(new Set(seen).size).toBe(3);
  });

  test('passes its check beside another service’s, which has the addresses of the check', async () => {
    const options = dockerOptions();
    const { docker: asked, confinement } = await openSite(options);
    const network = await ensureNetwork(asked, options.network);
    const name = `${testNetwork()}-samples`;
    onTestFinished(() => removeNetwork(name));
    docker('network', 'create', ...likeSessions('10.213'), name);
    // Its rules are the newest, so the kernel asks them first.
    await openSite(dockerOptions({ network: name }));
    await checkIsolation({ docker: asked, network, confinement });
  });
});

/** Flags for a network of 65,536 addresses with the settings of a sessions’ network. */
function likeSessions(prefix: string): string[] {
  const bridge = `com.docker.network.bridge.name=bss-s${process.pid}`;
  const addresses = ['--subnet', `${prefix}.0.0/16`, '--gateway', `${prefix}.0.1`];
  return [...addresses, '-o', bridge, '-o', 'com.docker.network.bridge.enable_icc=false'];
}
