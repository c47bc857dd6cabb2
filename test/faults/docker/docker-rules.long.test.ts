import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createAvailability } from '#src/browsers/availability.ts';
import { runContainer } from '#src/browsers/docker/container.ts';
import { connectEngine } from '#src/browsers/docker/engine.ts';
import { ensureRulesImage } from '#src/browsers/docker/image.ts';
import { checkIsolation, enforceRules, runRulesScript } from '#src/browsers/docker/isolation.ts';
import type { IsolationDependencies } from '#src/browsers/docker/isolation.ts';
import { ensureNetwork } from '#src/browsers/docker/network.ts';
import type { SessionsNetwork } from '#src/browsers/docker/network.ts';
import { noRulesText, tableOf } from '#src/browsers/docker/rules.ts';
import { openSite } from '#src/browsers/docker/site.ts';
import type { DockerSite, DockerSiteOptions } from '#src/browsers/docker/site.ts';
import { dockerOptions } from '#test/support/browsers/docker-browsers.fixture.ts';
import {
  docker,
  hasDocker,
  removeNetwork,
  testNetwork,
} from '#test/support/servers/docker-engine.ts';
import { openHosts } from '#test/support/servers/network-hosts.ts';
import type { NetworkHosts } from '#test/support/servers/network-hosts.ts';
import { eventually } from '#test/support/service/service.ts';
import { openEngineDoor } from '#test/support/servers/docker-engine-proxy.ts';

/** A network of its own: services of other tests restore the rules of theirs. */
const NETWORK = `${testNetwork()}-rules`;
const optionsOf = (more: Partial<DockerSiteOptions> = {}) =>
  dockerOptions({ network: NETWORK, ...more });

describe.runIf(hasDocker())('the rules of the sessions’ network', () => {
  let dependencies: IsolationDependencies;
  let site: DockerSite;
  let network: SessionsNetwork;
  beforeAll(async () => {
    site = await openSite(optionsOf());
    network = await ensureNetwork(site.docker, NETWORK);
    dependencies = {
      docker: site.docker,
      network,
      confinement: site.confinement,
      rulesImage: () => ensureRulesImage(site.docker, console.log),
    };
  });

  afterAll(() => removeNetwork(NETWORK));

  test('that are missing fail the check, and a start restores them', async () => {
    await runRulesScript(dependencies, noRulesText(network.bridge));
    const check = checkIsolation(dependencies);
    await expect(check).rejects.toThrow(`${network.gateway} 9: Connection refused`);
    await enforceRules(dependencies);
    await checkIsolation(dependencies);
  });

  test('can be enforced repeatedly and concurrently', async () => {
    await Promise.all([
      enforceRules(dependencies),
      enforceRules(dependencies),
      enforceRules(dependencies),
    ]);
    await checkIsolation(dependencies);
  });

  test('that were removed are restored and verified again', async () => {
    const { guard, warnings } = await openWatched();
    await guard.check();
    expect(warnings).toEqual([]);
    await runRulesScript(dependencies, noRulesText(network.bridge));
    await guard.check();
    expect(warnings).toEqual([expect.stringContaining('changed since they were verified')]);
    await checkIsolation(dependencies);
    // One rule less, as an operator may do by hand.
    await runRulesScript(
      dependencies,
      `flush chain inet ${tableOf(network.bridge)} from_sessions\n`,
    );
    await guard.check();
    expect(warnings).toHaveLength(2);
    await checkIsolation(dependencies);
    await guard.check();
    expect(warnings).toHaveLength(2);
  });

  test('that cannot be restored make the engine unavailable for launches', async () => {
    await using hosts = await openHosts();
    const { guard } = await openWatched();
    const table = `ip bss_leak_${process.pid}`;
    const leak = leakTo(hosts);
    const hook = 'type nat hook prerouting priority -110;';
    await runRulesScript(
      dependencies,
      `table ${table} {\n chain leak {\n ${hook}\n ${leak}\n }\n}\n`,
    );
    await runRulesScript(dependencies, noRulesText(network.bridge));
    const said: boolean[] = [];
    using availability = createAvailability(guard, { warn: () => {} }, 10);
    availability.onChange((isAvailable) => said.push(isAvailable));
    await eventually(() => said.length === 1, 'the engine is unavailable', 90_000);
    await runRulesScript(dependencies, `delete table ${table}\n`);
    await eventually(() => said.length === 2, 'the engine is available again', 90_000);
    expect(said).toEqual([false, true]);
  });

  test('are created again with their network if that was removed', async () => {
    const name = `${testNetwork()}-gone`;
    onTestFinished(() => removeNetwork(name));
    const other = await openSite(dockerOptions({ network: name }));
    docker('network', 'rm', name);
    await other.guard.check();
    expect(await ensureNetwork(site.docker, name)).toMatchObject({ name });
    const { confinement } = other;
    await checkIsolation({
      ...dependencies,
      network: await ensureNetwork(site.docker, name),
      confinement,
    });
  });

  test('are enforced by a container if this process may not', async () => {
    await runRulesScript(dependencies, noRulesText(network.bridge));
    const { PATH } = process.env;
    onTestFinished(() => void (process.env['PATH'] = PATH));
    process.env['PATH'] = '/nowhere';
    await enforceRules(dependencies);
    process.env['PATH'] = PATH;
    await checkIsolation(dependencies);
    expect(tableOf(network.bridge)).toMatch(/^bss_[\da-f]{8}$/);
  });

  test('that do not hold refuse the start, unless DOCKER_ISOLATION is best-effort', async () => {
    await using hosts = await openHosts();
    const table = `ip bss_leak_${process.pid}`;
    const leak = leakTo(hosts);
    const hook = 'type nat hook prerouting priority -110;';
    await runRulesScript(
      dependencies,
      `table ${table} {\n chain leak {\n ${hook}\n ${leak}\n }\n}\n`,
    );
    onTestFinished(
      async () => void (await runRulesScript(dependencies, `delete table ${table}\n`)),
    );
    const start = openSite(optionsOf());
    await expect(start).rejects.toThrow(/^DOCKER_ISOLATION: .* tcp 10[\d.]+ 9: reached/);
    const warnings: unknown[] = [];
    const log = { info: () => {}, warn: (...said: unknown[]) => void warnings.push(said) };
    await openSite(optionsOf({ isolation: 'best-effort', log }));
    expect(warnings).toHaveLength(1);
  });

  /** A rule that leads sessions of this network, and of no other test's, to a reachable host. */
  function leakTo(hosts: NetworkHosts): string {
    const from = `iifname "${network.bridge}" tcp dport 9 ip daddr 10.0.0.0/8`;
    return `${from} dnat to ${hosts.public}:${hosts.port}`;
  }

  /** The guard of another service, and its warnings. */
  async function openWatched() {
    const warnings: string[] = [];
    const log = {
      info: () => {},
      warn: (_: unknown, text: string) => void warnings.push(text),
    } as unknown as DockerSiteOptions['log'];
    const { guard } = await openSite(optionsOf({ log }));
    return { guard, warnings };
  }

  test('refuse a network whose containers reach each other', async () => {
    const name = `${testNetwork()}-open`;
    docker('network', 'create', name);
    onTestFinished(() => void docker('network', 'rm', name));
    await expect(ensureNetwork(site.docker, name)).rejects.toThrow(/^DOCKER_NETWORK: /);
  });
});

describe.runIf(hasDocker())('a container that a vanished service leaves behind', () => {
  const inContainers = (filter: string, ...which: string[]): string[] =>
    docker('ps', '-q', ...which, '--filter', filter)
      .split('\n')
      .filter(Boolean);

  test('from a check of its network ends and is removed by itself', async () => {
    const name = `${testNetwork()}-left`;
    onTestFinished(() => removeNetwork(name));
    await using engine = await openEngineDoor();
    const options = dockerOptions({ network: name, host: engine.host });
    const { docker: asked, confinement } = await openSite(options);
    const network = await ensureNetwork(asked, name);
    const check = expect(
      checkIsolation({ docker: asked, network, confinement }, 15_000),
    ).rejects.toThrow();
    const both = () => inContainers(`network=${name}`).length === 2;
    await eventually(both, 'the neighbour and its client run', 20_000);
    engine.shut();
    await check;
    expect(inContainers(`network=${name}`, '--all')).not.toEqual([]);
    const none = () => inContainers(`network=${name}`, '--all').length === 0;
    await eventually(none, 'both are gone');
  });

  test('that was to run once ends and is removed by itself', async () => {
    await using engine = await openEngineDoor();
    const { docker: asked } = await connectEngine(engine.host);
    const label = `test=once-${process.pid}`;
    const options = {
      Image: await ensureRulesImage(asked, console.log),
      Labels: { test: `once-${process.pid}` },
      Entrypoint: ['sleep', '600'],
    };
    onTestFinished(() => {
      const left = inContainers(`label=${label}`, '--all');
      if (left.length > 0) docker('rm', '-fv', ...left);
    });
    // The service does not end it before it has been seen.
    engine.hold(/^DELETE \S*\/containers\//);
    const run = expect(runContainer(asked, options, 10_000)).rejects.toThrow();
    await eventually(() => inContainers(`label=${label}`).length === 1, 'it runs');
    engine.shut();
    await run;
    const none = () => inContainers(`label=${label}`, '--all').length === 0;
    await eventually(none, 'it is gone');
  });

  test('that does not answer proves nothing: the check fails', async () => {
    const { docker: asked, confinement } = await openSite(dockerOptions());
    const network = await ensureNetwork(asked, testNetwork());
    const check = checkIsolation({ docker: asked, network, confinement }, 1_000);
    await expect(check).rejects.toThrow();
    await checkIsolation({ docker: asked, network, confinement });
  });
});
