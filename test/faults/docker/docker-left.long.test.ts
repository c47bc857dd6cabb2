import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createDockerBrowsers } from '#src/browsers/docker/docker-browsers.ts';
import type { DockerBrowsersOptions } from '#src/browsers/docker/docker-browsers.ts';
import type { BrowserExit, BrowserSpec } from '#src/browsers/browsers.ts';
import { createLinkKeys } from '#src/browsers/link/browser-link.ts';
import { readVersion } from '#src/browsers/chromium/version.ts';
import { labelsOf, nameOf } from '#src/browsers/docker/naming.ts';
import { docker, hasDocker } from '#test/support/servers/docker-engine.ts';
import { dialRfb } from '#test/support/clients/rfb-client.ts';
import {
  browsersFor,
  containersOf,
  dockerOptions,
  MASTER_KEY,
  openDockerBrowsers,
} from '#test/support/browsers/docker-browsers.fixture.ts';
import { openCdp } from '#test/support/browsers/browsers.fixture.ts';

const SCREEN = { width: 800, height: 600 };
const PASSWORD = 'aB3dE6gH';
const keys = createLinkKeys(Buffer.from(MASTER_KEY));
let launches = 0;

describe.runIf(hasDocker())('after the service was killed', () => {
  test('its browsers are found with their sessions and adopted, and their exits are reported', async () => {
    const options = dockerOptions();
    const spec = aSpec();
    await leaveBrowser(options, spec, 'ses_left');
    await using browsers = await browsersFor(options);
    onTestFinished(() => browsers.stop(spec.workloadId));
    const exits: BrowserExit[] = [];
    browsers.onExit((exit) => exits.push(exit));

    const [found] = await browsers.list();
    expect(found).toMatchObject({ workloadId: spec.workloadId, sessionId: 'ses_left' });
    const browser = await browsers.adopt(spec.workloadId);
    expect(browser).toEqual(found?.adoptable);
    if (browser === null) throw new Error('not adopted');
    using cdp = await openCdp(browser.cdp);
    expect(await cdp.send('Browser.getVersion')).toMatchObject({ protocolVersion: '1.3' });
    using viewer = await dialRfb(browser.vnc, PASSWORD);
    expect(viewer.width).toBe(SCREEN.width);

    docker('kill', ...containersOf(options.serverId));
    await expect.poll(() => exits.length).toBe(1);
    expect(exits).toMatchObject([{ workloadId: spec.workloadId, exitCode: 137 }]);
    expect(await browsers.list()).toEqual([]);
  });

  test('a browser closed meanwhile is listed with the time; one that was killed has none', async () => {
    const options = dockerOptions();
    const [closed, killed] = [aSpec(), aSpec()];
    await leaveBrowser(options, closed, 'ses_closed');
    await leaveBrowser(options, killed, 'ses_killed');
    docker('kill', ...containersOf(options.serverId, killed.workloadId));
    const closedAt = await closeIn(containersOf(options.serverId, closed.workloadId)[0] ?? '');

    await using browsers = await browsersFor(options);
    const listed = await browsers.list();
    const found = { adoptable: null };
    const [one, other] = [closed.workloadId, killed.workloadId];
    expect(listed).toContainEqual({ ...found, workloadId: one, sessionId: 'ses_closed', closedAt });
    expect(listed).toContainEqual({ ...found, workloadId: other, sessionId: 'ses_killed' });
  });

  test('containers that were never started or have ended are found and removed', async () => {
    const options = dockerOptions();
    const spec = aSpec();
    await leaveBrowser(options, spec, 'ses_left');
    docker('kill', ...containersOf(options.serverId));
    const unstarted = `wl_unstarted_${process.pid}`;
    const labels = labelsOf(options.serverId, unstarted);
    const flags = Object.entries(labels).flatMap(([key, value]) => ['--label', `${key}=${value}`]);
    docker('create', ...flags, '--name', nameOf(unstarted), imageOf(options));

    await using browsers = await browsersFor(options);
    const listed = await browsers.list();
    expect(listed).toHaveLength(2);
    expect(listed).toContainEqual({
      workloadId: spec.workloadId,
      sessionId: 'ses_left',
      adoptable: null,
    });
    expect(listed).toContainEqual({ workloadId: unstarted, sessionId: null, adoptable: null });
    expect(await browsers.adopt(spec.workloadId)).toBeNull();
    await browsers.stop(spec.workloadId);
    await browsers.stop(unstarted);
    expect(await browsers.list()).toEqual([]);
  });

  test('the browsers of another server on the same engine are left alone', async () => {
    await using opened = await openDockerBrowsers();
    const { workloadId } = await opened.browsers.launch(aSpec());
    await using second = await openDockerBrowsers();
    expect(await second.browsers.list()).toEqual([]);
    await second.browsers.stop(workloadId);
    expect(await second.browsers.adopt(workloadId)).toBeNull();
    expect(opened.traces()).toHaveLength(1);
  });
});

test.runIf(hasDocker())(
  'browsers of servers that are gone are removed at a start, and no others',
  async () => {
    await using gone = await openDockerBrowsers();
    await using running = await openDockerBrowsers();
    for (const { browsers } of [gone, running]) await browsers.launch(aSpec());
    const options = dockerOptions();
    const asked: string[] = [];
    await using _ = await createDockerBrowsers({
      ...options,
      isServerGone: async (id) => {
        asked.push(id);
        return id === gone.options.serverId;
      },
    });
    expect(asked).toEqual(
      expect.arrayContaining([gone, running].map((one) => one.options.serverId)),
    );
    expect(gone.traces()).toEqual([]);
    expect(running.traces()).toHaveLength(1);
  },
);

/** Closes the browser in a container. @returns when its container exited, by the engine's clock */
async function closeIn(container: string): Promise<number> {
  const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}';
  const host = docker('inspect', '--format', format, container);
  const address = { host, port: 9223, linkKey: keys(workloadOf(container)) };
  const { webSocketDebuggerUrl } = await readVersion(address, AbortSignal.timeout(10_000));
  using cdp = await openCdp({ ...address, path: new URL(webSocketDebuggerUrl).pathname });
  await cdp.send('Browser.close').catch(() => undefined);
  const state = () => docker('inspect', '--format', '{{.State.Status}}', container);
  await expect.poll(state).toBe('exited');
  return Date.parse(docker('inspect', '--format', '{{.State.FinishedAt}}', container));
}

function workloadOf(container: string): string {
  const format = '{{index .Config.Labels "browser-session-service.workload"}}';
  return docker('inspect', '--format', format, container);
}

function aSpec(): BrowserSpec {
  launches += 1;
  const workloadId = `wl_left_${process.pid}_${launches}`;
  return { workloadId, vncPassword: PASSWORD, screen: SCREEN };
}

function imageOf({ serverId }: DockerBrowsersOptions): string {
  return docker('inspect', '--format', '{{.Config.Image}}', containersOf(serverId)[0] ?? '');
}

/** A service process that launches a browser, assigns it to a session and prints a line. */
const OWNER = `
  const { adapter, link, options, spec, sessionId } = JSON.parse(process.argv[1]);
  const { createLinkKeys } = await import(link);
  const linkKeys = createLinkKeys(Buffer.from(${JSON.stringify(MASTER_KEY)}));
  const { createDockerBrowsers } = await import(adapter);
  const log = { info() {}, warn() {} };
  const browsers = await createDockerBrowsers({ ...options, linkKeys, print() {}, log });
  await browsers.launch(spec);
  await browsers.assign(spec.workloadId, sessionId);
  console.log('launched');
  setInterval(() => {}, 1000);
`;

/** Leaves the browser of a service process that was killed. */
async function leaveBrowser(
  options: DockerBrowsersOptions,
  spec: BrowserSpec,
  sessionId: string,
): Promise<void> {
  onTestFinished(() => {
    const left = containersOf(options.serverId);
    if (left.length > 0) docker('rm', '-fv', ...left);
  });
  const adapter = import.meta.resolve('#src/browsers/docker/docker-browsers.ts');
  const link = import.meta.resolve('#src/browsers/link/browser-link.ts');
  const task = JSON.stringify({ adapter, link, options, spec, sessionId });
  const owner = spawn(process.execPath, ['--input-type=module', '-e', OWNER, task], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(owner.stdout, 'data');
  owner.kill('SIGKILL');
  await once(owner, 'exit');
}
