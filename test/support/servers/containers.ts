import { isRunning } from '#test/support/scratch.ts';
import { docker, hasDocker } from './docker-engine.ts';
import { startNats } from './real-nats.ts';
import { startRedis } from './real-redis.ts';

/** A server that tests reach by its address and stop by disposal. */
export type Server = AsyncDisposable & { readonly url: string };

/** Where a suite's server runs. */
export type ServerPlace = { where: 'process' | 'container'; start: () => Promise<Server> };

/**
 * The nightly run asks for it, in its second run of some suites. Without an engine that one is on
 * processes, too, and the summary says so.
 */
const onContainers = process.env['TEST_SERVERS'] === 'container' && hasDocker();

/** For suites that neither kill nor configure their server. */
export const natsServers: readonly ServerPlace[] = onContainers
  ? [{ where: 'container', start: startNatsContainer }]
  : [{ where: 'process', start: () => startNats() }];

export const redisServers: readonly ServerPlace[] = onContainers
  ? [{ where: 'container', start: startRedisContainer }]
  : [{ where: 'process', start: startRedis }];

/** Adapters without such a server, which a second run would prove nothing new about. */
export function elsewhere<Adapter>(adapters: readonly Adapter[]): readonly Adapter[] {
  return onContainers ? [] : adapters;
}

/** Holds the id of the process that runs all tests. */
const RUN_LABEL = 'browser-session-service.test-run';
const START_MS = 60_000;

function startNatsContainer(): Promise<Server> {
  return startContainer({
    image: 'nats:2',
    command: ['-js', '-sd', '/data'],
    port: 4222,
    ready: /Server is ready/,
  });
}

function startRedisContainer(): Promise<Server> {
  return startContainer({
    image: 'redis:7',
    command: ['redis-server', '--save', '', '--appendonly', 'no'],
    port: 6379,
    ready: /Ready to accept connections/,
  });
}

/**
 * Starts a container of an image, which is pulled if the engine lacks it, with its data in memory.
 * Ryuk, the container by which the library removes others, is not used: it needs another image and
 * the engine's socket, and `removeContainers` removes the same containers by their label.
 */
async function startContainer(options: {
  image: string;
  command: string[];
  port: number;
  ready: RegExp;
}): Promise<Server> {
  const { image, command, port, ready } = options;
  // Loaded here: it takes half a second, which files without containers save.
  const { GenericContainer, Wait } = await import('testcontainers');
  const started = await new GenericContainer(image)
    .withCommand(command)
    .withExposedPorts(port)
    .withTmpFs({ '/data': 'rw' })
    .withLabels({ [RUN_LABEL]: process.env['TEST_RUN'] ?? '' })
    .withAutoCleanup(false)
    // The images have no shell, which waiting for a port inside the container needs.
    .withWaitStrategy(Wait.forLogMessage(ready))
    .withStartupTimeout(START_MS)
    .start();
  const scheme = image.slice(0, image.indexOf(':'));
  return {
    url: `${scheme}://${started.getHost()}:${started.getMappedPort(port)}`,
    async [Symbol.asyncDispose]() {
      await started.stop({ timeout: 0 });
    },
  };
}

/** Removes the containers of this run, and those of runs that have ended. */
export function removeContainers(): void {
  const own = process.env['TEST_RUN'];
  const format = `{{.ID}} {{.Label "${RUN_LABEL}"}}`;
  const listed = docker('ps', '-a', '--filter', `label=${RUN_LABEL}`, '--format', format);
  for (const line of listed.split('\n').filter(Boolean)) {
    const [id = '', run = ''] = line.split(' ');
    if (run === own || !isRunning(Number(run))) docker('rm', '-fv', id);
  }
}
