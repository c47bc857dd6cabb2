import Docker from 'dockerode';
import { describe, expect, test } from 'vitest';
import { createDockerBrowsers } from '#src/browsers/docker/docker-browsers.ts';
import type { BrowserExit, BrowserSpec } from '#src/browsers/browsers.ts';
import { ensureBrowserImage } from '#src/browsers/docker/browser-image.ts';
import { ensureRulesImage } from '#src/browsers/docker/image.ts';
import { docker, dockerHost, hasDocker } from '#test/support/servers/docker-engine.ts';
import {
  containersOf,
  dockerOptions,
  openDockerBrowsers,
} from '#test/support/browsers/docker-browsers.fixture.ts';
import { EAT, preferChromium } from '#test/support/browsers/out-of-memory.ts';
import { attachPage, openCdp } from '#test/support/browsers/browsers.fixture.ts';
import type { Cdp } from '#test/support/browsers/browsers.fixture.ts';
import { openEngineDoor } from '#test/support/servers/docker-engine-proxy.ts';

const ENGINE = dockerHost.slice('unix://'.length);
const MIB = 1024 ** 2;
let launches = 0;

describe.runIf(hasDocker())('a page that allocates memory without end', () => {
  const limits = { memoryBytes: 400 * MIB, cpus: 2, pids: 512 };

  test('loses its own process or its own session; the neighbour’s session goes on', async () => {
    await using opened = await openDockerBrowsers({ limits });
    const exits: BrowserExit[] = [];
    opened.browsers.onExit((exit) => exits.push(exit));
    const [greedy, neighbour] = [aSpec(), aSpec()];
    const { cdp: endpoint } = await opened.browsers.launch(greedy);
    const other = await opened.browsers.launch(neighbour);
    using watched = await openCdp(other.cdp);
    const page = await attachPage(watched);
    const ticks = 'let ticks = 0; setInterval(() => (ticks += 1), 10)';
    await watched.send('Runtime.evaluate', { expression: ticks }, page);

    using cdp = await openCdp(endpoint);
    const eater = await attachPage(cdp);
    await cdp.send('Runtime.evaluate', { expression: EAT }, eater);
    await expect.poll(() => hasLost(cdp, exits), { timeout: 120_000, interval: 250 }).toBe(true);
    for (const exit of exits) expect(exit).toMatchObject({ workloadId: greedy.workloadId });
    const ticked = await watched.send('Runtime.evaluate', { expression: 'ticks' }, page);
    expect(ticked).toMatchObject({ result: { type: 'number' } });
    expect(containersOf(opened.options.serverId, neighbour.workloadId)).toHaveLength(1);
  });

  test('that takes Chromium with it ends the session with out_of_memory', async () => {
    await using opened = await openDockerBrowsers({ limits });
    const exits: BrowserExit[] = [];
    opened.browsers.onExit((exit) => exits.push(exit));
    const spec = aSpec();
    const { cdp: endpoint } = await opened.browsers.launch(spec);
    using cdp = await openCdp(endpoint);
    const eater = await attachPage(cdp);
    const [id = ''] = containersOf(opened.options.serverId, spec.workloadId);
    await preferChromium(id);
    await cdp.send('Runtime.evaluate', { expression: EAT }, eater);
    await expect.poll(() => exits.length, { timeout: 120_000 }).toBe(1);
    const { workloadId } = spec;
    const killed = { reason: 'out_of_memory', exitCode: 137, memoryPeakBytes: 400 * MIB };
    expect(exits[0]).toMatchObject({ workloadId, ...killed });
  });
});

describe.runIf(hasDocker())('while the engine’s events do not arrive', () => {
  test('the end of a browser is reported once they arrive again', async () => {
    await using engine = await openEngineDoor();
    const options = dockerOptions({ host: engine.host, log: { info: () => {}, warn: () => {} } });
    await using browsers = await createDockerBrowsers(options);
    const exits: BrowserExit[] = [];
    browsers.onExit((exit) => exits.push(exit));
    const [one, two] = [aSpec(), aSpec()];
    await browsers.launch(one);
    const { cdp: endpoint } = await browsers.launch(two);

    engine.shut();
    docker('kill', ...containersOf(options.serverId, one.workloadId));
    await expect(browsers.list()).rejects.toThrow();
    expect(exits).toEqual([]);
    engine.open();
    await expect.poll(() => exits.length).toBe(1);
    expect(exits).toMatchObject([{ workloadId: one.workloadId, exitCode: 137 }]);
    using cdp = await openCdp(endpoint);
    expect(await cdp.send('Browser.getVersion')).toMatchObject({ protocolVersion: '1.3' });
  });
});

describe.runIf(hasDocker())('the return of an engine that went away during a launch', () => {
  test('is reported, although its stream of events has not ended yet', async () => {
    await using engine = await openEngineDoor();
    const options = dockerOptions({ host: engine.host, log: { info: () => {}, warn: () => {} } });
    await using browsers = await createDockerBrowsers(options);
    const reported: (boolean | 'failed')[] = [];
    browsers.onAvailable?.((isAvailable) => reported.push(isAvailable));

    await browsers.launch(aSpec());
    engine.shut({ butEvents: true });
    await browsers.launch(aSpec()).catch(() => reported.push('failed'));
    expect(reported).toEqual([false, 'failed']);
    engine.open();
    await expect.poll(() => reported).toEqual([false, 'failed', true]);
    await browsers.launch(aSpec());
  });
});

describe.runIf(hasDocker())('an image', () => {
  test('that is missing is built, with a line of output for each step', async () => {
    const engine = new Docker({ socketPath: ENGINE });
    const tag = await ensureRulesImage(engine, () => {});
    docker('rmi', '--no-prune', tag);
    const said: string[] = [];
    expect(await ensureRulesImage(engine, (line) => said.push(line))).toBe(tag);
    expect(said[0]).toContain('Building the network rules');
    expect(said).toContainEqual(expect.stringMatching(/step 2 of \d+/));
    expect(said.at(-1)).toMatch(/Built .* in \d+ s/);
    expect(await ensureRulesImage(engine, (line) => said.push(line))).toBe(tag);
    expect(said.at(-1)).toMatch(/Built/);
  });

  test('named by BROWSER_IMAGE that does not exist is refused, not built', async () => {
    const engine = new Docker({ socketPath: ENGINE });
    const asked = ensureBrowserImage(engine, 'no-such/image:1', () => {});
    await expect(asked).rejects.toThrow(/^BROWSER_IMAGE: .*no-such\/image:1/);
  });
});

function aSpec(): BrowserSpec {
  launches += 1;
  const workloadId = `wl_faults_${process.pid}_${launches}`;
  return { workloadId, vncPassword: 'aB3dE6gH', screen: { width: 800, height: 600 } };
}

/** Whether the greedy page's process is gone, or all of its browser. */
async function hasLost(cdp: Cdp, exits: readonly BrowserExit[]): Promise<boolean> {
  if (exits.length > 0) return true;
  const { targetInfos } = await cdp.send('Target.getTargets').catch(() => ({ targetInfos: [] }));
  const pages = targetInfos as { type: string; url: string; title: string }[];
  if (pages.length === 0) return true;
  const page = await attachPage(cdp);
  const asked = cdp.send('Runtime.evaluate', { expression: '1' }, page).then(
    () => 'answered',
    () => 'gone',
  );
  const late = new Promise((resolve) => setTimeout(resolve, 5_000, 'gone'));
  return (await Promise.race([asked, late])) === 'gone';
}
