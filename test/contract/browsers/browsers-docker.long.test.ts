import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { linkKeyText } from '#src/browsers/link/browser-link.ts';
import { createDockerBrowsers } from '#src/browsers/docker/docker-browsers.ts';
import type { BrowserExit, BrowserSpec, RunningBrowser } from '#src/browsers/browsers.ts';
import { LaunchFailed } from '#src/browsers/browsers.ts';
import { DockerUnavailable } from '#src/browsers/docker/engine.ts';
import {
  browserImage,
  buildImage,
  docker,
  dockerHost,
  hasDocker,
} from '#test/support/servers/docker-engine.ts';
import { colourAt, dialRfb } from '#test/support/clients/rfb-client.ts';
import {
  containersOf,
  dockerOptions,
  openDockerBrowsers,
} from '#test/support/browsers/docker-browsers.fixture.ts';
import { attachPage, evaluate, openCdp } from '#test/support/browsers/browsers.fixture.ts';

type Opened = Awaited<ReturnType<typeof openDockerBrowsers>>;

const SCREEN = { width: 800, height: 600 };
const PASSWORD = 'aB3dE6gH';
let launches = 0;

describe.runIf(hasDocker())('a browser in a container', () => {
  let opened: Opened;
  let browser: RunningBrowser;
  let container: string;
  beforeAll(async () => {
    process.env['SERVICE_SECRET'] = 'not for pages';
    opened = await openDockerBrowsers({
      limits: { memoryBytes: 700 * 1024 ** 2, cpus: 1.5, pids: 400 },
    });
    browser = await opened.browsers.launch(aSpec());
    [container = ''] = containersOf(opened.options.serverId, browser.workloadId);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('shows the page that CDP leads it to', async () => {
    using cdp = await openCdp(browser.cdp);
    using viewer = await dialRfb(browser.vnc, PASSWORD);
    const session = await attachPage(cdp);
    const url = 'data:text/html,<body style="background:rgb(200,30,40)">';
    await cdp.send('Page.navigate', { url }, session);
    const colour = async () => colourAt(viewer, await viewer.framebuffer(), 400, 400);
    await expect.poll(colour).toBe('#c81e28');
  });

  test('is adequately sandboxed', async () => {
    using cdp = await openCdp(browser.cdp);
    const session = await attachPage(cdp);
    await cdp.send('Page.navigate', { url: 'chrome://sandbox' }, session);
    const words = () => evaluate(cdp, session, 'document.body.innerText');
    await expect.poll(words).toContain('You are adequately sandboxed.');
  });

  test('has no capability, no way to get one, and no file system to write to', () => {
    const status = docker('exec', container, 'cat', '/proc/1/status');
    const field = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1];
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      expect([set, field(set)]).toEqual([set, '0000000000000000']);
    expect([field('NoNewPrivs'), field('Seccomp'), field('Uid')]).toEqual(['1', '2', '1000']);
    const tries = [
      'touch /x',
      'touch /etc/x',
      'cp /bin/true /tmp/x && /tmp/x',
      'mount -t tmpfs x /mnt',
    ];
    for (const attempt of tries) {
      const run = ['exec', container, 'bash', '-c', `${attempt} 2>/dev/null; echo $?`];
      expect([attempt, docker(...run)]).not.toEqual([attempt, '0']);
    }
  });

  test('has its limits, and labels and a name that say what it belongs to', async () => {
    const [{ HostConfig, Config, Name }] = JSON.parse(docker('inspect', container)) as [Inspected];
    expect(HostConfig).toMatchObject({
      Memory: 700 * 1024 ** 2,
      MemorySwap: 700 * 1024 ** 2,
      NanoCpus: 1.5e9,
      PidsLimit: 400,
      ReadonlyRootfs: true,
      Privileged: false,
      CapDrop: ['ALL'],
    });
    expect(Config.Labels).toMatchObject({
      owner: 'browser-session-service',
      'browser-session-service.server': opened.options.serverId,
      'browser-session-service.workload': browser.workloadId,
    });
    expect(Name).toBe(`/bss.${browser.workloadId}`);
    await opened.browsers.assign(browser.workloadId, 'ses_of_this');
    const name = docker('inspect', '--format', '{{.Name}}', container);
    expect(name).toBe(`/bss.${browser.workloadId}.ses_of_this`);
  });

  test('has none of the service’s environment variables', () => {
    expect(docker('exec', container, 'env')).not.toContain('SERVICE_SECRET');
  });

  test('has its keys in no environment, and in no file once they are read', () => {
    const linkKey = linkKeyText(opened.options.linkKeys(browser.workloadId));
    const inside = (script: string) => docker('exec', container, 'bash', '-c', script);
    const programs = inside(
      'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n"',
    );
    expect(programs).toContain('SCREEN_SIZE=800x600');
    for (const key of [linkKey, PASSWORD]) {
      expect(docker('inspect', container)).not.toContain(key);
      expect(programs).not.toContain(key);
      expect(inside(`grep -rlsF ${key} /home /tmp /run /dev/shm; :`)).toBe('');
    }
  });

  test('has the requested language and time zone', async () => {
    const { workloadId, cdp: endpoint } = await opened.browsers.launch({
      ...aSpec(),
      locale: 'de-DE',
      timezone: 'Asia/Tokyo',
    });
    onTestFinished(() => opened.browsers.stop(workloadId));
    using cdp = await openCdp(endpoint);
    const session = await attachPage(cdp);
    const ask = 'navigator.language + new Date(0).getHours()';
    expect(await evaluate(cdp, session, ask)).toBe('de-DE9');
  });

  test.each(['Xtigervnc', 'stunnel', 'chromium'])(
    'ends with its %s and reports that',
    async (name) => {
      const exits: BrowserExit[] = [];
      opened.browsers.onExit((exit) => exits.push(exit));
      const { workloadId } = await opened.browsers.launch(aSpec());
      const [id = ''] = containersOf(opened.options.serverId, workloadId);
      // The program may not have started yet, and the container may end before the next kill.
      const first = `$(grep -la ${name} /proc/[0-9]*/comm | tr -dc '0-9\\n' | sort -n | head -1)`;
      const kill = () => {
        if (containersOf(opened.options.serverId, workloadId).includes(id))
          spawnSync('docker', ['-H', dockerHost, 'exec', id, 'bash', '-c', `kill -9 ${first}`]);
        return exits.length;
      };
      await expect.poll(kill).toBe(1);
      expect(exits[0]).toMatchObject({ workloadId, reason: 'browser_crashed', exitCode: 137 });
      expect(exits[0]?.detail).toContain('ended with 137');
      expect(containersOf(opened.options.serverId, workloadId)).toEqual([]);
    },
  );

  test.each([
    ['its Xtigervnc', 'exec', 'Xtigervnc', 'The X server ended with 0'],
    ['its stunnel', 'exec', 'stunnel', 'The link ended with '],
    ['its Chromium', 'exec', 'chromium', 'Chromium ended with 0'],
    ['the container', 'stop', '', 'SIGTERM'],
  ])('a SIGTERM to %s is no close', async (_, way, name, words) => {
    const exits: BrowserExit[] = [];
    opened.browsers.onExit((exit) => exits.push(exit));
    const { workloadId } = await opened.browsers.launch(aSpec());
    const [id = ''] = containersOf(opened.options.serverId, workloadId);
    const first = `$(grep -la ${name} /proc/[0-9]*/comm | tr -dc '0-9\\n' | sort -n | head -1)`;
    docker(
      ...(way === 'stop' ? ['stop', id] : ['exec', '--detach', id, 'bash', '-c', `kill ${first}`]),
    );
    await expect.poll(() => exits.length).toBe(1);
    expect(exits[0]).toMatchObject({ workloadId, reason: 'browser_crashed' });
    expect(exits[0]?.exitCode).toBeGreaterThan(0);
    expect(exits[0]?.detail).toContain(words);
  });
});

describe.runIf(hasDocker())('a launch', () => {
  test('fails with the last output of the program that ended too early', async () => {
    // 24 processes are too few for Chromium's threads.
    await using opened = await openDockerBrowsers({
      limits: { memoryBytes: 512 * 1024 ** 2, cpus: 2, pids: 24 },
    });
    const failure = await opened.browsers.launch(aSpec()).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LaunchFailed);
    expect(failure).toMatchObject({
      message: expect.stringMatching(/ended before it was ready: exit code \d+/),
      detail: expect.stringContaining('ended with'),
    });
    expect(opened.traces()).toEqual([]);
  });

  test('waits for an X server that starts late', async () => {
    await using opened = await openDockerBrowsers({ image: await imageWithLateX() });
    const { vnc } = await opened.browsers.launch(aSpec());
    using viewer = await dialRfb(vnc, PASSWORD);
    expect(viewer.width).toBe(SCREEN.width);
  });

  test('reaches browsers by a published address where the operator names one', async () => {
    await using opened = await openDockerBrowsers({ publish: '127.0.0.1' });
    const { cdp, vnc, workloadId } = await opened.browsers.launch(aSpec());
    expect([cdp.host, vnc.host]).toEqual(['127.0.0.1', '127.0.0.1']);
    using client = await openCdp(cdp);
    expect(await client.send('Browser.getVersion')).toMatchObject({ protocolVersion: '1.3' });
    using viewer = await dialRfb(vnc, PASSWORD);
    expect(viewer.width).toBe(SCREEN.width);
    expect(await opened.browsers.list()).toMatchObject([{ workloadId, adoptable: { cdp, vnc } }]);
  });
});

test('without an engine the error names the variable that sets its address', async () => {
  const failure = createDockerBrowsers(dockerOptions({ host: 'unix:///nowhere/docker.sock' }));
  await expect(failure).rejects.toThrow(DockerUnavailable);
  await expect(failure).rejects.toThrow(/^DOCKER_HOST: .*unix:\/\/\/nowhere\/docker.sock/);
});

type Inspected = {
  Name: string;
  HostConfig: Record<string, unknown>;
  Config: { Labels: Record<string, string> };
};

function aSpec(): BrowserSpec {
  launches += 1;
  const workloadId = `wl_docker_${process.pid}_${launches}`;
  return { workloadId, vncPassword: PASSWORD, screen: SCREEN };
}

/** The browsers' image with an X server that starts two seconds late. */
async function imageWithLateX(): Promise<string> {
  const tag = `browser-session-service/late-x:${process.pid}`;
  const late = '#!/bin/bash\\nsleep 2\\nexec /usr/bin/Xtigervnc "$@"\\n';
  const recipe = [
    `FROM ${await browserImage()}`,
    'USER root',
    `RUN printf '${late}' >/usr/local/bin/Xtigervnc && chmod 755 /usr/local/bin/Xtigervnc`,
    'USER 1000:1000',
  ];
  buildImage(tag, recipe.join('\n'));
  onTestFinished(() => void docker('rmi', '-f', tag));
  return tag;
}
