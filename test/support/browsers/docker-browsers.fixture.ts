import { createLinkKeys } from '#src/browsers/link/browser-link.ts';
import { browsersAt } from '#src/browsers/docker/docker-browsers.ts';
import type { DockerBrowsersOptions } from '#src/browsers/docker/docker-browsers.ts';
import type { Browsers } from '#src/browsers/browsers.ts';
import { filterFor } from '#src/browsers/docker/naming.ts';
import { openSite } from '#src/browsers/docker/site.ts';
import { openBrowserImage } from '#src/browsers/docker/browser-image.ts';
import { createCurrentImage } from '#src/browsers/docker/current-image.ts';
import type { DockerSite } from '#src/browsers/docker/site.ts';
import { docker, dockerHost, testNetwork } from '#test/support/servers/docker-engine.ts';
import { LAUNCH_MS, type OpenedBrowsers } from './browsers.fixture.ts';

/** The master key of the tests’ browsers. */
export const MASTER_KEY = 'fFq2mZ7xKp4sVt9wRb3nYc6dHg8jLe1a';

let opened = 0;

/** Options of a test's Docker browsers; each call is for another server. */
export function dockerOptions(changes: Partial<DockerBrowsersOptions> = {}): DockerBrowsersOptions {
  opened += 1;
  return {
    host: dockerHost,
    serverId: `srv_test_${process.pid}_${opened}`,
    network: testNetwork(),
    image: null,
    publish: null,
    dns: [],
    isolation: 'required',
    limits: { memoryBytes: 1024 ** 3, cpus: 2, pids: 512 },
    linkKeys: createLinkKeys(Buffer.from(MASTER_KEY)),
    launchTimeoutMs: LAUNCH_MS,
    print: console.log,
    log: { info: () => {}, warn: console.warn },
    ...changes,
  };
}

/** The engine is prepared once per process of tests; the other options are per server. */
let ready: Promise<DockerSite> | null = null;

/** A prepared engine for a server's browsers. */
export async function siteFor(options: DockerBrowsersOptions): Promise<DockerSite> {
  // Without the first server's own address: it may be gone when the next file launches.
  ready ??= openSite({ ...options, publish: null });
  const { docker, confinement, guard, closed, image: ours } = await ready;
  const { serverId, limits } = options;
  const publish = options.publish ?? confinement.publish;
  const given = options.image;
  const first = given === null ? ours.now() : await openBrowserImage(docker, given, options.print);
  return {
    docker,
    confinement: { ...confinement, image: first.name, serverId, limits, publish },
    image: createCurrentImage({ docker, first, given }),
    filter: filterFor(serverId),
    guard,
    closed,
  };
}

/** Like `createDockerBrowsers`, but the engine is prepared only once. */
export async function browsersFor(options: DockerBrowsersOptions): Promise<Browsers> {
  return browsersAt(await siteFor(options), options);
}

export async function openDockerBrowsers(
  changes: Partial<DockerBrowsersOptions> = {},
): Promise<OpenedBrowsers & { options: DockerBrowsersOptions }> {
  const options = dockerOptions(changes);
  const browsers = await browsersFor(options);
  return {
    browsers,
    options,
    traces: () => containersOf(options.serverId),
    crash: (workloadId) => docker('kill', ...containersOf(options.serverId, workloadId)),
    [Symbol.asyncDispose]: async () => {
      await browsers[Symbol.asyncDispose]();
      const left = containersOf(options.serverId);
      if (left.length > 0) docker('rm', '-fv', ...left);
    },
  };
}

/** Ids of the containers of a server, or of one of its workloads. */
export function containersOf(serverId: string, workloadId?: string): string[] {
  const labels = [
    `label=browser-session-service.server=${serverId}`,
    ...(workloadId === undefined ? [] : [`label=browser-session-service.workload=${workloadId}`]),
  ];
  const listed = docker('ps', '-aq', '--no-trunc', ...labels.flatMap((one) => ['--filter', one]));
  return listed.split('\n').filter(Boolean);
}
