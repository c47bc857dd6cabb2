import { execFileSync } from 'node:child_process';
import { request } from 'node:http';
import Docker from 'dockerode';
import { noRulesText } from '#src/provisioner/browsers/docker/rules.ts';
import { ensureBrowserImage, ensureRulesImage } from '#src/provisioner/browsers/docker/image.ts';
import { runRulesScript } from '#src/provisioner/browsers/docker/isolation.ts';

/** The Docker engine that tests run browsers on, if there is one. */
export const dockerHost = process.env['DOCKER_HOST'] || 'unix:///var/run/docker.sock';

/** Set by the tests' setup, before any of them is loaded. */
export function hasDocker(): boolean {
  return process.env['TEST_DOCKER'] === 'yes';
}

/** A network for this run alone; the setup removes it. */
export function testNetwork(): string {
  return process.env['TEST_DOCKER_NETWORK'] ?? '';
}

/** Runs the engine's command line; returns its output, trimmed. */
export function docker(...args: string[]): string {
  return execFileSync('docker', ['-H', dockerHost, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();
}

/** Builds an image from the text of a Dockerfile that needs no other files. */
export function buildImage(tag: string, dockerfile: string): void {
  const args = ['-H', dockerHost, 'build', '-q', '-t', tag, '-'];
  execFileSync('docker', args, { input: dockerfile, stdio: ['pipe', 'ignore', 'pipe'] });
}

/** The image that tests run browsers from; the setup has built it. */
export async function browserImage(): Promise<string> {
  return ensureBrowserImage(engine(), null, console.error);
}

/** Whether an engine answers within two seconds. */
export async function findDocker(host = dockerHost): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const place = host.startsWith('unix://')
    ? { socketPath: host.slice('unix://'.length) }
    : new URL(host.replace(/^tcp:/, 'http:'));
  const asked = request({
    ...(place instanceof URL ? { host: place.hostname, port: place.port } : place),
    path: '/_ping',
    timeout: 2_000,
  });
  asked.on('response', (answer) => resolve(answer.resume().statusCode === 200));
  asked.on('timeout', () => asked.destroy());
  asked.on('error', () => resolve(false));
  asked.end();
  return promise;
}

/** Builds the browsers' image if it is missing; if that fails, its tests fail. */
export async function prepareDocker(): Promise<void> {
  await ensureBrowserImage(engine(), null, console.error).catch(console.error);
}

/** Removes the networks of a name, their rules and what a failed test has left on them. */
export async function removeNetwork(name: string): Promise<void> {
  const found = docker('network', 'ls', '-q', '--filter', `name=^${name}$`);
  for (const id of found.split('\n').filter(Boolean)) {
    const left = docker('ps', '-aq', '--filter', `network=${id}`);
    if (left !== '') docker('rm', '-fv', ...left.split('\n'));
    const bridge = docker(
      ...['network', 'inspect', id, '--format'],
      '{{index .Options "com.docker.network.bridge.name"}}',
    );
    await runRulesScript(
      {
        docker: engine(),
        network: { name, bridge, gateway: '', subnet: '' },
        rulesImage: () => ensureRulesImage(engine(), console.error),
      },
      noRulesText(bridge),
    );
    docker('network', 'rm', id);
  }
}

function engine(): Docker {
  const socketPath = dockerHost.slice('unix://'.length);
  return new Docker(dockerHost.startsWith('unix://') ? { socketPath } : {});
}
