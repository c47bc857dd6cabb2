import { execFileSync, spawnSync } from 'node:child_process';
import { request } from 'node:http';
import Docker from 'dockerode';
import { retry } from '#src/kernel/async/retry.ts';
import { noRulesText } from '#src/browsers/docker/rules.ts';
import { ensureBrowserImage } from '#src/browsers/docker/browser-image.ts';
import { ensureRulesImage } from '#src/browsers/docker/image.ts';
import { runRulesScript } from '#src/browsers/docker/isolation.ts';
import { isRunning } from '#test/support/scratch.ts';

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

/**
 * Runs the engine's command line; returns its output, trimmed.
 * @throws Error with the arguments and what the engine says, on one line
 */
export function docker(...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync('docker', ['-H', dockerHost, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 ** 2,
  });
  if (error !== undefined) throw error;
  if (status !== 0)
    throw new Error(`docker ${args.join(' ')}: ${stderr.trim().replaceAll(/\s+/g, ' ')}`);
  return stdout.trim();
}

/** The id of a browser's container; its name gets the session's id a moment after the create. */
export function containerOf(workloadId: string): string {
  const label = `label=browser-session-service.workload=${workloadId}`;
  return docker('ps', '--all', '--quiet', '--filter', label);
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

/** The longest that a start or a removal under way in the engine keeps a network in use. */
const IN_USE_MS = 60_000;

/**
 * Removes the networks of a name, their rules and what a failed test has left on them.
 *
 * An engine before 28 counts the endpoints of a network beside their list. A start that fails at
 * the wrong moment leaves the count at 1 with an empty list; then the engine refuses to remove the
 * network until it is started again, when it logs "Fixing inconsistent endpoint_cnt". Such a
 * network is left for `removeLeftNetworks` of a later run.
 */
export async function removeNetwork(name: string): Promise<void> {
  for (const id of linesOf('network', 'ls', '-q', '--filter', `name=^${name}$`)) {
    const bridge = docker(
      ...['network', 'inspect', id, '--format'],
      '{{index .Options "com.docker.network.bridge.name"}}',
    );
    await runRulesScript(
      {
        docker: engine(),
        network: { name, bridge, gateway: '', subnet: '', isOurs: false },
        rulesImage: () => ensureRulesImage(engine(), console.error),
      },
      noRulesText(bridge),
    );
    const untilFree = { withinMs: IN_USE_MS, pauseMs: () => 500, isTransient: () => true };
    // A container that has not started yet is known by the network's name, not by its id.
    const filters = ['--filter', `network=${id}`, '--filter', `network=${name}`];
    const containers = () => linesOf('ps', '-aq', ...filters);
    try {
      await retry(untilFree, async () => {
        const left = containers();
        if (left.length > 0) docker('rm', '-fv', ...left);
        docker('network', 'rm', id);
      });
    } catch (error) {
      const endpoints = docker('network', 'inspect', id, '--format', '{{len .Containers}}');
      const isMiscounted = String(error).includes('has active endpoints') && endpoints === '0';
      if (!isMiscounted || containers().length > 0) throw error;
      console.warn(`The network ${name} is left: its engine counts an endpoint but lists none.`);
    }
  }
}

/** Removes the sessions' networks of test runs that were killed: an engine has room for some 30. */
export async function removeLeftNetworks(): Promise<void> {
  const filters = ['--filter', 'label=owner=browser-session-service'];
  const names = linesOf('network', 'ls', ...filters, '--format', '{{.Name}}');
  for (const name of names) {
    const run = /^bss(?:-test-|t)(\d+)/.exec(name)?.[1];
    if (run !== undefined && !isRunning(Number(run))) await removeNetwork(name);
  }
}

/** The lines that the engine's command prints. */
function linesOf(...args: string[]): string[] {
  return docker(...args)
    .split('\n')
    .filter(Boolean);
}

function engine(): Docker {
  const socketPath = dockerHost.slice('unix://'.length);
  return new Docker(dockerHost.startsWith('unix://') ? { socketPath } : {});
}
