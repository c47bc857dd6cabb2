import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request as requestByTls } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { WebSocket } from 'ws';
import { docker, removeNetwork } from '#test/support/servers/docker-engine.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { eventually, type Answer } from './service.ts';

export type Profile = 'single' | 'cluster';

/** A profile of deploy/compose.yaml, started by up.sh and used from outside with TLS. */
export type Topology = AsyncDisposable & {
  /** The beginning of sessions' addresses: `wss://host:port`. */
  prefix: string;
  sessionsNetwork: string;
  /** Sends a request as an owner, unless `headers` differ; the certificate is verified. */
  request(method: string, path: string, body?: unknown, headers?: Headers): Promise<Answer>;
  open(url: string, protocols?: string[]): Promise<WebSocket>;
  /**
   * Runs the operator's command in its own container; returns its JSON. @throws if it is refused
   */
  bss(...args: string[]): Promise<unknown>;
  /** Name of a part's container. */
  container(part: string): string;
  /** Sends SIGKILL to the part's process, like a crash; resolves once it runs again. */
  crash(part: string): Promise<void>;
  /** Replaces the part's container, like an upgrade; resolves once it is healthy. */
  replace(part: string): Promise<void>;
  /** What up.sh has printed. */
  said: string;
  /** Ends all of it by down.sh, its volumes too. */
  down(): Promise<void>;
  /** Status and text of an endpoint in a part's container, requested from the inner network. */
  scrape(part: string, hasToken: boolean): { status: number; text: string };
};
type Headers = Record<string, string>;

const DEPLOY = fileURLToPath(new URL('../../../deploy/', import.meta.url));
/** Time to build images, and for a cluster to elect its leaders. */
const UP_WITHIN_MS = 600_000;
const ANSWER_WITHIN_MS = 30_000;
const run = promisify(execFile);

export async function startTopology(
  profile: Profile,
  settings: Record<string, string>,
): Promise<Topology> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'bss-topology-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const [port = 0, gatewayPort = 0] = await freePorts(2);
  const project = `bsst${process.pid}${profile}`;
  const net = `10.214.${process.pid % 250}`;
  const env: Record<string, string> = {
    SECRETS_DIR: join(folder, 'secrets'),
    COMPOSE_PROJECT_NAME: project,
    SERVICE_IMAGE: 'browser-session-service',
    // The images that other tests use too.
    NATS_IMAGE: 'nats:2',
    REDIS_IMAGE: 'redis:7',
    HTTPS_PORT: String(port),
    GATEWAY_PORT: String(gatewayPort),
    LISTEN: '127.0.0.1',
    SUBNET: `${net}.0/24`,
    HOST_ADDRESS: `${net}.1`,
    PROXY_ADDRESS: `${net}.250`,
    DOCKER_NETWORK: `${project}-sessions`,
    DOCKER_GID: String(statSync('/var/run/docker.sock').gid),
    ...settings,
  };
  stack.defer(() => removeNetwork(env['DOCKER_NETWORK'] ?? ''));
  async function down(): Promise<void> {
    const more = ['--volumes', '--remove-orphans', '--timeout', '15'];
    await execute(join(DEPLOY, 'down.sh'), [profile, ...more], env);
  }
  stack.defer(down);
  const said = await execute(join(DEPLOY, 'up.sh'), [profile], env);
  const operator = `${project}_operator`;
  const tool = profile === 'single' ? 'bss-single' : 'bss';
  await compose(env, 'run', '-d', '--name', operator, '--entrypoint', 'sleep', tool, 'infinity');
  stack.defer(() => void docker('rm', '-fv', operator));
  const ca = await readFile(join(folder, 'secrets', 'edge.pem'), 'utf8');
  let key = '';

  const container = (part: string) => containerOf(project, part);
  const topology: Topology = {
    // In the cluster all requests arrive at the proxy.
    prefix: `wss://localhost:${profile === 'single' ? gatewayPort : port}`,
    sessionsNetwork: env['DOCKER_NETWORK'] ?? '',
    container,
    said,
    down,
    request: (method, path, body, headers = {}) =>
      ask({
        ca,
        port,
        method,
        path,
        body,
        headers: { authorization: `Bearer ${key}`, ...headers },
      }),
    async open(url, protocols = []) {
      const socket = new WebSocket(url, protocols, { ca });
      // The first message may come with the answer, before the caller listens.
      socket.once('open', () => {
        socket.pause();
        setImmediate(() => socket.resume());
      });
      await once(socket, 'open');
      return socket;
    },
    async bss(...args) {
      const said = await execute('docker', ['exec', operator, 'bss', ...args, '--json'], env);
      return JSON.parse(said) as unknown;
    },
    async crash(part) {
      // The pid 0 would stand for the processes of these tests.
      const before = await eventually(() => pidOf(container(part)) || null, `${part} runs`);
      process.kill(before, 'SIGKILL');
      await eventually(
        () => ![0, before].includes(pidOf(container(part))),
        `${part} runs again`,
        UP_WITHIN_MS,
      );
    },
    async replace(part) {
      await compose(env, 'up', '-d', '--no-deps', '--force-recreate', part);
      await eventually(() => isWell(container(part)), `${part} is well`, UP_WITHIN_MS);
    },
    scrape: (part, hasToken) => scrape(container('timekeeper-1'), part, hasToken),
    [Symbol.asyncDispose]: () => disposable.disposeAsync(),
  };
  await eventually(
    // Browsers too: an API is ready without them.
    async () =>
      (await topology.request('GET', '/api/health').catch(() => null))?.body.status === 'healthy',
    'the topology is healthy',
    UP_WITHIN_MS,
  );
  key = await newKey(topology);
  const disposable = stack.move();
  return topology;
}

async function newKey(topology: Topology): Promise<string> {
  const made = await topology.bss('orgs', 'create', '--name', 'Acme', '--tier', 'max');
  const { organization_id: org } = made as { organization_id: string };
  const issued = await topology.bss(
    ...['keys', 'issue', '--org', org, '--role', 'owner', '--user', 'ann'],
  );
  const { api_key: key } = issued as { api_key: string };
  const headers = { authorization: `Bearer ${key}` };
  await eventually(
    async () => (await topology.request('GET', '/api/status', undefined, headers)).status === 200,
    'the key is taken',
    ANSWER_WITHIN_MS,
  );
  return key;
}

/** The same as a Prometheus beside the containers would do. */
function scrape(from: string, part: string, hasToken: boolean) {
  const script = `
    const token = require('node:fs').readFileSync('/run/secrets/metrics_token', 'utf8').trim();
    const headers = ${hasToken} ? { authorization: 'Bearer ' + token } : {};
    fetch('http://${part}:9464/metrics', { headers }).then(async (answer) =>
      console.log(JSON.stringify({ status: answer.status, text: await answer.text() })));`;
  return JSON.parse(docker('exec', from, 'node', '--eval', script)) as {
    status: number;
    text: string;
  };
}

type Asked = {
  ca: string;
  port: number;
  method: string;
  path: string;
  body: unknown;
  headers: Headers;
};

async function ask({ ca, port, method, path, body, headers }: Asked): Promise<Answer> {
  const json = body === undefined ? undefined : JSON.stringify(body);
  const asked = requestByTls({
    ...{ host: 'localhost', port, ca, method, path, timeout: ANSWER_WITHIN_MS },
    headers: { ...headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
  });
  asked.on('timeout', () => asked.destroy(new Error('no answer')));
  asked.end(json);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const said = await text(response);
  const isJson = String(response.headers['content-type']).includes('json');
  const known = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
  return {
    status: response.statusCode ?? 0,
    headers: new Headers(known as [string, string][]),
    body: isJson && said !== '' ? JSON.parse(said) : {},
  };
}

function containerOf(project: string, part: string): string {
  const labels = [`com.docker.compose.project=${project}`, `com.docker.compose.service=${part}`];
  return docker('ps', '-aq', ...labels.flatMap((label) => ['--filter', `label=${label}`]));
}

/** A container without a health check counts as healthy once it runs. */
function isWell(container: string): boolean {
  const format = '{{if .State.Health}}{{.State.Health.Status}}{{else}}{{.State.Status}}{{end}}';
  return ['healthy', 'running'].includes(docker('inspect', '--format', format, container));
}

/** 0 while it does not run. */
function pidOf(container: string): number {
  return Number(docker('inspect', '--format', '{{.State.Pid}}', container));
}

/** The engine's own `compose`, else the program of that name. */
async function compose(env: Record<string, string>, ...args: string[]): Promise<void> {
  const profiles = ['single', 'cluster', 'tools'].flatMap((profile) => ['--profile', profile]);
  if (hasPlugin()) await execute('docker', ['compose', ...profiles, ...args], env);
  else await execute('docker-compose', [...profiles, ...args], env);
}

function hasPlugin(): boolean {
  try {
    execFileSync('docker', ['compose', 'version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function execute(
  program: string,
  args: string[],
  env: Record<string, string>,
): Promise<string> {
  const options = { cwd: DEPLOY, env: { ...process.env, ...env }, maxBuffer: 64 * 1024 ** 2 };
  try {
    return (await run(program, args, options)).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(' ')}: ${stdout ?? ''}${stderr ?? ''}`.slice(-4000), {
      cause: error,
    });
  }
}
