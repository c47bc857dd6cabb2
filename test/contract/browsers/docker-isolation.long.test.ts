import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { docker, hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { openHosts } from '#test/support/servers/network-hosts.ts';
import type { NetworkHosts } from '#test/support/servers/network-hosts.ts';
import {
  containersOf,
  openDockerBrowsers,
} from '#test/support/browsers/docker-browsers.fixture.ts';
import { attachPage, evaluate, getFrom, openCdp } from '#test/support/browsers/browsers.fixture.ts';
import type { Cdp } from '#test/support/browsers/browsers.fixture.ts';

const SPEC = { vncPassword: 'aB3dE6gH', screen: { width: 800, height: 600 } };
const REFUSED = 'net::ERR_CONNECTION_REFUSED';

describe.runIf(hasDocker())('from inside a session’s browser', () => {
  let opened: Awaited<ReturnType<typeof openDockerBrowsers>>;
  let hosts: NetworkHosts;
  let browser: RunningBrowser;
  let neighbour: RunningBrowser;
  let cdp: Cdp;
  let page: string;
  beforeAll(async () => {
    hosts = await openHosts();
    opened = await openDockerBrowsers();
    [browser, neighbour] = await Promise.all([
      opened.browsers.launch({ ...SPEC, workloadId: `wl_inside_${process.pid}` }),
      opened.browsers.launch({ ...SPEC, workloadId: `wl_neighbour_${process.pid}` }),
    ]);
    cdp = await openCdp(browser.cdp);
    page = await attachPage(cdp);
  });
  afterAll(async () => {
    await opened[Symbol.asyncDispose]();
    await hosts[Symbol.asyncDispose]();
  });

  /** Navigates the page there. @returns the browser's error, or null */
  async function errorAt(host: string, port: number): Promise<unknown> {
    const url = `http://${host}:${port}/`;
    const { errorText = null } = await cdp.send('Page.navigate', { url }, page);
    return errorText;
  }

  /** Runs a script in the session's container, outside of the browser's own policies. */
  function shell(script: string): string {
    const [id = ''] = containersOf(opened.options.serverId, browser.workloadId);
    return docker('exec', id, 'bash', '-c', `${script}; echo "exit $?"`);
  }

  test('the public network is reachable', async () => {
    expect(await errorAt(hosts.public, hosts.port)).toBeNull();
    expect(await hosts.reached(hosts.public)).not.toEqual([]);
    const words = () => evaluate(cdp, page, 'document.body.innerText');
    await expect.poll(words).toBe('hello');
  });

  test.each(['linkLocal', 'private10', 'private192'] as const)(
    'an address that is %s is not reachable, though this host and other containers reach it',
    async (kind) => {
      const host = hosts[kind];
      const answer = await fetch(`http://${host}:${hosts.port}/`);
      expect(await answer.text()).toBe('hello');
      const image = docker('ps', '--format', '{{.Image}}', '--filter', `name=bss.wl_inside`);
      const elsewhere = ['--rm', '--network', 'bridge', '--entrypoint', 'bash', image];
      docker('run', ...elsewhere, '-c', `exec 3<>/dev/tcp/${host}/${hosts.port}`);
      const before = await hosts.reached(host);
      expect(before).toEqual([`tcp ${host}`, `tcp ${host}`]);

      expect(await errorAt(host, hosts.port)).toBe(REFUSED);
      expect(shell(`timeout 3 bash -c 'exec 3<>/dev/tcp/${host}/${hosts.port}'`)).toBe('exit 1');
      shell(`echo ${host} >/dev/udp/${host}/${hosts.port}`);
      expect(await hosts.reached(host)).toEqual(before);
    },
  );

  test('the ports of another session are not reachable, though this host reaches them', async () => {
    expect((await getFrom(neighbour.cdp, '/json/version')).status).toBe(200);
    const { host: ip } = neighbourAddress();
    for (const target of [9_223, 5_900]) {
      expect(shell(`timeout 1 bash -c 'exec 3<>/dev/tcp/${ip}/${target}'`)).toMatch(/exit (1|124)/);
    }
    const deadline = new Promise((resolve) => setTimeout(resolve, 1_000, 'silence'));
    const outcome = await Promise.race([errorAt(ip, 9_223), deadline]);
    expect(['silence', REFUSED, 'net::ERR_CONNECTION_TIMED_OUT']).toContain(outcome);
    await cdp.send('Page.stopLoading', {}, page);
  });

  test('no more than 1,024 connections are open at once', async () => {
    const connect = `exec {socket}<>/dev/tcp/${hosts.public}/${hosts.port} || break`;
    const script = `n=0; while [ $n -lt 1100 ]; do ${connect}; n=$((n+1)); done 2>/dev/null`;
    const opened = Number(/opened (\d+)/.exec(shell(`${script}; echo opened $n`))?.[1]);
    // Chromium and the tests before have some open too.
    expect(opened).toBeGreaterThan(900);
    expect(opened).toBeLessThanOrEqual(1_024);
    await expect.poll(() => errorAt(hosts.public, hosts.port)).toBeNull();
  });

  function neighbourAddress(): { host: string } {
    const [id = ''] = containersOf(opened.options.serverId, neighbour.workloadId);
    const format = `{{(index .NetworkSettings.Networks "${testNetwork()}").IPAddress}}`;
    return { host: docker('inspect', '--format', format, id) };
  }

  test('the services of the host are not reachable by any of its addresses', async () => {
    const received: string[] = [];
    const server = createServer((request, response) => {
      received.push(String(request.socket.localAddress));
      response.end('hello');
    }).listen(0, '0.0.0.0');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const format = '{{(index .IPAM.Config 0).Gateway}}';
    const gateway = docker('network', 'inspect', '--format', format, testNetwork());
    for (const host of [gateway, hosts.machine]) {
      expect((await fetch(`http://${host}:${port}/`)).status).toBe(200);
      expect(received.splice(0)).toHaveLength(1);
      expect(await errorAt(host, port)).toBe(REFUSED);
    }
    expect(received).toEqual([]);
  });
});
