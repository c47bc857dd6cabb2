import { describe, expect, test } from 'vitest';
import { createDockerBrowsers } from '#src/browsers/docker/docker-browsers.ts';
import type { BrowserSpec } from '#src/browsers/browsers.ts';
import { checkIsolation } from '#src/browsers/docker/isolation.ts';
import { ensureNetwork } from '#src/browsers/docker/network.ts';
import { openSite } from '#src/browsers/docker/site.ts';
import { containersOf, dockerOptions } from '#test/support/browsers/docker-browsers.fixture.ts';
import { docker, hasDocker } from '#test/support/servers/docker-engine.ts';
import { openEngineDoor } from '#test/support/servers/docker-engine-proxy.ts';

let launches = 0;

describe.runIf(hasDocker())('while the engine does not answer requests to attach', () => {
  const ATTACH = /^POST \S*\/attach/;
  const options = (host: string, launchTimeoutMs: number) =>
    dockerOptions({ host, launchTimeoutMs, log: { info: () => {}, warn: () => {} } });

  test('a launch fails within its timeout, and succeeds once the engine answers again', async () => {
    await using engine = await openEngineDoor();
    const given = options(engine.host, 25_000);
    await using browsers = await createDockerBrowsers(given);
    engine.hold(ATTACH);
    const launched = browsers.launch(aSpec());
    await expect(launched).rejects.toThrow('not ready within 25000 ms');
    expect(containersOf(given.serverId)).toEqual([]);
    expect(await browsers.list()).toEqual([]);
    engine.hold(null);
    await browsers.launch(aSpec());
  });

  test('a launch can be stopped', async () => {
    await using engine = await openEngineDoor();
    const given = options(engine.host, 300_000);
    await using browsers = await createDockerBrowsers(given);
    engine.hold(ATTACH);
    const spec = aSpec();
    const launched = expect(browsers.launch(spec)).rejects.toThrow('stopped during the launch');
    await expect.poll(() => engine.held()).toBe(1);
    await browsers.stop(spec.workloadId);
    await launched;
    expect(containersOf(given.serverId)).toEqual([]);
  });

  test('a stop does not succeed before the container of the cancelled launch is gone', async () => {
    await using engine = await openEngineDoor();
    const given = options(engine.host, 300_000);
    await using browsers = await createDockerBrowsers(given);
    engine.hold(ATTACH);
    engine.refuse(/^DELETE \S*\/containers\//);
    const spec = aSpec();
    const launched = expect(browsers.launch(spec)).rejects.toThrow();
    await expect.poll(() => engine.held()).toBe(1);
    await expect(browsers.stop(spec.workloadId)).rejects.toThrow();
    await launched;
    expect(engine.refused()).toBe(2);
    expect(containersOf(given.serverId)).toHaveLength(1);
    engine.refuse(null);
    await browsers.stop(spec.workloadId);
    expect(containersOf(given.serverId)).toEqual([]);
  });

  test('the check of the network’s isolation ends', async () => {
    await using engine = await openEngineDoor();
    const { docker: asked, confinement } = await openSite(options(engine.host, 12_000));
    const network = await ensureNetwork(asked, confinement.network);
    engine.hold(ATTACH);
    await expect(checkIsolation({ docker: asked, network, confinement })).rejects.toThrow();
    expect(engine.held()).toBe(1);
  });
});

test.runIf(hasDocker())(
  'files are written and containers removed where the engine takes half a minute',
  async () => {
    await using engine = await openEngineDoor();
    const given = dockerOptions({ host: engine.host });
    await using browsers = await createDockerBrowsers(given);
    const [keeping, leaving] = [aSpec(), aSpec()];
    await Promise.all([browsers.launch(keeping), browsers.launch(leaving)]);
    engine.delay(/^(?:POST \S*\/exec\/\S*\/start|DELETE \S*\/containers\/)/, 32_000);
    const text = Buffer.from('a log-in');
    async function* body() {
      yield text;
    }
    const file = { bytes: text.length, body: body() };
    const signal = AbortSignal.timeout(300_000);
    await Promise.all([
      browsers.folders.write(keeping.workloadId, 'kept.txt', file, signal),
      browsers.stop(leaving.workloadId),
    ]);
    await using kept = await browsers.folders.read(keeping.workloadId, 'kept.txt', signal);
    expect(Buffer.concat(await Array.fromAsync(kept?.body ?? [])).toString()).toBe('a log-in');
    expect(containersOf(given.serverId, leaving.workloadId)).toEqual([]);
  },
);

test.runIf(hasDocker())(
  'a browser whose profile was read goes on once the engine answers again',
  async () => {
    await using engine = await openEngineDoor();
    const given = dockerOptions({ host: engine.host });
    await using browsers = await createDockerBrowsers(given);
    const spec = { ...aSpec(), profile: { tar: null, isKept: true } };
    await browsers.launch(spec);
    const [container = ''] = containersOf(given.serverId, spec.workloadId);
    const isPaused = () => docker('inspect', '--format', '{{.State.Paused}}', container);
    engine.refuse(/^POST \S*\/unpause/);
    const signal = AbortSignal.timeout(60_000);
    for await (const _ of browsers.readProfile(spec.workloadId, signal));
    expect([isPaused(), engine.refused() > 1]).toEqual(['true', true]);
    engine.refuse(null);
    await expect.poll(isPaused).toBe('false');
  },
);

function aSpec(): BrowserSpec {
  launches += 1;
  const workloadId = `wl_silent_${process.pid}_${launches}`;
  return { workloadId, vncPassword: 'aB3dE6gH', screen: { width: 800, height: 600 } };
}
