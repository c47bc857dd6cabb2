import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import type { EgressProxy } from '#src/browsers/egress-endpoint.ts';
import { createOpenEgress } from '#src/features/egress/open-egress.ts';
import { noRulesText } from '#src/browsers/docker/rules.ts';
import { runRulesScript } from '#src/browsers/docker/isolation.ts';
import { ensureNetwork } from '#src/browsers/docker/network.ts';
import { ensureRulesImage } from '#src/browsers/docker/image.ts';
import { evaluate, openCdp, type OpenedBrowsers } from '#test/support/browsers/browsers.fixture.ts';
import {
  browsersFor,
  containersOf,
  openDockerBrowsers,
  siteFor,
} from '#test/support/browsers/docker-browsers.fixture.ts';
import {
  attemptAll,
  gatherCandidates,
  heldBack,
  show,
} from '#test/support/browsers/egress-attempts.ts';
import {
  docker,
  hasDocker,
  removeNetwork,
  testNetwork,
} from '#test/support/servers/docker-engine.ts';
import { openHosts, type NetworkHosts } from '#test/support/servers/network-hosts.ts';

const SPEC = { vncPassword: 'aB3dE6gH', screen: { width: 800, height: 600 }, headless: true };
const NETWORK = `${testNetwork()}-egress`;
const names = {
  allowed: 'allowed.localhost',
  denied: 'denied.localhost',
  trick: 'trick.localhost',
};

describe.runIf(hasDocker())('a browser in a container, of a session with egress rules', () => {
  let hosts: NetworkHosts;
  let opened: OpenedBrowsers & { options: Parameters<typeof browsersFor>[0] };
  let proxy: EgressProxy;
  let browser: RunningBrowser;
  const rules = { allow: [names.allowed, names.trick], deny: [] };
  const openEgress = () =>
    createOpenEgress({
      resolve: async (name) => [name === names.trick ? hosts.private10 : hosts.public],
    })(rules, 'ses_1');

  beforeAll(async () => {
    hosts = await openHosts();
    opened = await openDockerBrowsers();
    proxy = await openEgress();
    browser = await opened.browsers.launch({ ...SPEC, workloadId: 'wl_held', egress: proxy });
  });
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await opened[Symbol.asyncDispose]();
    await removeNetwork(NETWORK);
    await hosts[Symbol.asyncDispose]();
  });
  const at = (host: string) => `http://${host}:${hosts.port}/`;
  const targets = () => ({ ...names, address: hosts.public, port: hosts.port });
  const inside = (workloadId: string, command: string): string =>
    docker(
      ...['exec', ...containersOf(opened.options.serverId, workloadId)],
      ...['bash', '-c', `${command} 2>&1 || true`],
    );

  test('reaches the allowed host, and no other by any attempt of a page', async () => {
    expect(await attemptAll(browser, targets())).toEqual(heldBack);
    for (const protocol of ['stun', 'quic']) expect(await hosts.reached(protocol)).toEqual([]);
    const counted = new Map(proxy.takeTraffic()?.hosts.map((one) => [one.host, one]));
    expect(counted.get(names.denied)).toMatchObject({ connections: 0, lastRefusal: 'not_allowed' });
    expect(counted.get(names.trick)).toMatchObject({ lastRefusal: 'private_network' });
    expect(counted.get(names.allowed)?.bytesReceived).toBeGreaterThan(100);
    for (const address of [hosts.private10, hosts.private192, hosts.linkLocal])
      expect(await hosts.reached(address)).toEqual([]);
  });

  test('has no way out past its proxy, whatever runs in its container', async () => {
    const { public: address, port } = hosts;
    const before = await hosts.reached(address);
    const tcp = (host: string, at: number) =>
      inside('wl_held', `timeout 5 bash -c 'echo >/dev/tcp/${host}/${at}'`);
    expect(tcp(address, port)).toContain('Connection refused');
    expect(tcp(hosts.machine, port)).toContain('Connection refused');
    const { gateway } = await network();
    expect(tcp(gateway, 22)).toContain('Connection refused');
    inside('wl_held', `for i in 1 2 3; do echo sneaked >/dev/udp/${address}/${port}; done`);
    expect(await hosts.reached('sneaked')).toEqual([]);
    expect(await hosts.reached(address)).toEqual(before);
    expect(inside('wl_held', 'timeout 4 getent ahosts example.com')).toBe('');
    expect(inside('wl_held', 'cat /proc/net/if_inet6')).not.toMatch(/eth0/);
    // A client may open a context without a proxy, or with one of its own.
    expect(await openInContext('direct://')).not.toContain('hello');
    expect(await openInContext(`http://${address}:${port}`)).not.toContain('hello');
  });

  test('without rules the same attempts do reach the host', async () => {
    const free = await opened.browsers.launch({ ...SPEC, workloadId: 'wl_free' });
    onTestFinished(() => opened.browsers.stop('wl_free'));
    const { public: address, port } = hosts;
    inside('wl_free', `for i in 1 2 3; do echo free >/dev/udp/${address}/${port}; done`);
    expect(await hosts.reached('free')).not.toEqual([]);
    await gatherCandidates(free, targets());
    expect(await hosts.reached('stun')).not.toEqual([]);
  });

  test('is served by the next process after a restart of the first', async () => {
    const next = await browsersFor(opened.options);
    onTestFinished(() => next.leave?.());
    await using other = await openEgress();
    expect(await next.adopt('wl_held', other)).not.toBeNull();
    await proxy[Symbol.asyncDispose]();
    await expect.poll(() => show(browser, at(names.allowed))).toBe('hello');
    expect(other.takeTraffic()?.hosts[0]).toMatchObject({ host: names.allowed, refused: 0 });
    expect(await show(browser, at(names.denied))).not.toBe('hello');
  });

  test('rules that were removed are restored by the next check', async () => {
    const { docker: engine, guard } = await siteFor(opened.options);
    const parts = {
      docker: engine,
      network: await network(),
      rulesImage: () => ensureRulesImage(engine, console.log),
    };
    await runRulesScript(parts, noRulesText(parts.network.bridge));
    await guard.check();
    const command = `timeout 5 bash -c 'echo >/dev/tcp/${hosts.public}/${hosts.port}'`;
    expect(inside('wl_held', command)).toContain('Connection refused');
  });

  const network = async () =>
    ensureNetwork((await siteFor(opened.options)).docker, NETWORK, { isClosed: true });

  /** What a page shows that is opened in a context with another proxy. */
  async function openInContext(proxyServer: string): Promise<string> {
    using cdp = await openCdp(browser.cdp);
    const context = { proxyServer, proxyBypassList: '<-loopback>' };
    const { browserContextId } = await cdp.send('Target.createBrowserContext', context);
    const made = { url: 'about:blank', browserContextId };
    const { targetId } = await cdp.send('Target.createTarget', made);
    const attach = { targetId, flatten: true };
    const { sessionId } = await cdp.send('Target.attachToTarget', attach);
    const session = String(sessionId);
    await cdp.send('Page.navigate', { url: at(hosts.public) }, session);
    const shown = await evaluate(cdp, session, 'document.body.innerText');
    await cdp.send('Target.disposeBrowserContext', { browserContextId });
    return String(shown);
  }
});
