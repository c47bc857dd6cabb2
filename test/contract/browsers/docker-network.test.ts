import { describe, expect, onTestFinished, test } from 'vitest';
import { connectEngine } from '#src/provisioner/browsers/docker/engine.ts';
import { ensureNetwork } from '#src/provisioner/browsers/docker/network.ts';
import { docker, dockerHost, hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';

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
});
