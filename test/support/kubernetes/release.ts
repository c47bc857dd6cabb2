import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually, type Answer } from '#test/support/service/service.ts';
import { kubectl, kubectlCommand, loadedImage, loadImages, testNamespace } from './cluster.ts';
import { CHART, helm } from './helm.ts';
import { nodeAddress, startNameServer } from './name-server.ts';
import { enforcePolicies } from './policies.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const NAME = 'sessions';
const SERVICE_IMAGE = 'browser-session-service:chart';
const STORES = { nats: 'nats:2', redis: 'redis:7' };
const NATS_NODES = 3;
const READY_WITHIN_MS = 600_000;

/** The chart, installed from images that the nodes have, and used from outside of the cluster. */
export type Release = AsyncDisposable & {
  name: string;
  namespace: string;
  /** Installs it again with other values, as `helm upgrade`. */
  upgrade(...values: string[]): void;
  request(method: string, path: string, body?: unknown, headers?: object): Promise<Answer>;
  bss(...args: string[]): unknown;
  /** Names of its Pods, of one part or all of its browsers. */
  pods(part: 'browser' | 'api' | 'gateway' | 'projector' | 'timekeeper' | 'provisioner'): string[];
  /** Resolves once every Pod of it is ready. */
  untilReady(): Promise<void>;
};

export async function installRelease(): Promise<Release> {
  await using stack = new AsyncDisposableStack();
  const namespace = testNamespace();
  buildService(SERVICE_IMAGE);
  loadImages(SERVICE_IMAGE, ...Object.values(STORES));
  const address = await nodeAddress(kubectl);
  const node = kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}');
  stack.use(enforcePolicies(node));
  const { address: nameServer } = stack.use(await startNameServer(address));
  const folder = await mkdtemp(join(tmpdir(), 'bss-chart-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  await makeVolumes(stack, folder);
  const [image, tag] = SERVICE_IMAGE.split(':');
  const values = {
    image: { repository: image, tag },
    publicHost: 'localhost',
    browsers: { image: loadedImage(), requests: { memoryMb: 128, cpus: 0.05 } },
    pool: { minIdle: 1, max: 10 },
    nats: { image: STORES.nats, storage: { size: '2Gi', className: '-' } },
    redis: { image: STORES.redis },
    dnsPolicy: 'None',
    dnsConfig: {
      nameservers: [nameServer],
      searches: [`${namespace}.svc.cluster.local`, 'svc.cluster.local'],
    },
    // Without a proxy in front, clients reach the gateway's Service itself.
    service: { api: { type: 'ClusterIP' }, gateway: { type: 'ClusterIP' } },
  };
  const file = join(folder, 'values.json');
  await writeFile(file, JSON.stringify(values));
  const upgrade = (...more: string[]) =>
    void helm('upgrade', '--install', NAME, CHART, '--values', file, ...more, '--timeout', '10m');
  stack.defer(() => void helm('uninstall', NAME, '--wait', '--ignore-not-found'));
  upgrade();
  const service = (part: string) =>
    kubectl('get', 'service', `${NAME}-${part}`, '-o', 'jsonpath={.spec.clusterIP}');
  const gateway = `ws://${service('gateway')}:8081`;
  upgrade('--set', `env.PUBLIC_GATEWAY_WS_URL=${gateway},env.PUBLIC_GATEWAY_WSS_URL=${gateway}`);
  const apiUrl = `http://${service('api')}:8080`;
  const selector = `app.kubernetes.io/instance=${NAME}`;
  const bss = (...args: string[]): unknown =>
    JSON.parse(kubectl('exec', `deploy/${NAME}-bss`, '--', 'bss', ...args, '--json'));
  async function untilReady(): Promise<void> {
    const ready = async () => {
      const path = '{range .items[*]}{.status.containerStatuses[*].ready}{"\\n"}{end}';
      const told = kubectl('get', 'pods', '-l', selector, '-o', `jsonpath=${path}`).split('\n');
      return told.length > 10 && told.every((one) => one === 'true');
    };
    await eventually(ready, 'every Pod is ready', READY_WITHIN_MS);
  }
  await untilReady();
  const made = bss('orgs', 'create', '--name', 'Acme', '--tier', 'max');
  const { organization_id: org } = made as { organization_id: string };
  const issued = bss('keys', 'issue', '--org', org, '--role', 'owner', '--user', 'ann');
  const { api_key: key } = issued as { api_key: string };
  const all = stack.move();
  return {
    name: NAME,
    namespace,
    upgrade,
    bss,
    untilReady,
    async request(method, path, body, headers = {}) {
      const response = await fetch(apiUrl + path, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const answered = text === '' ? {} : JSON.parse(text);
      return { status: response.status, headers: response.headers, body: answered };
    },
    pods(part) {
      const chosen =
        part === 'browser'
          ? 'browser-session-service/role=browser'
          : `${selector},app.kubernetes.io/component=${part}`;
      return kubectl('get', 'pods', '-l', chosen, '-o', 'jsonpath={.items[*].metadata.name}')
        .split(' ')
        .filter(Boolean);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

function buildService(image: string): void {
  execFileSync('docker', ['build', '-q', '-t', image, '-f', 'deploy/Dockerfile', '.'], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** Volumes on the node for NATS: the cluster has no storage class. */
async function makeVolumes(stack: AsyncDisposableStack, folder: string): Promise<void> {
  for (let at = 0; at < NATS_NODES; at += 1) {
    const path = join(folder, `volume-${at}`);
    await mkdir(path, { mode: 0o777 });
    const name = `${testNamespace()}-${at}`;
    const volume = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '2Gi' },
        persistentVolumeReclaimPolicy: 'Retain',
        hostPath: { path },
      },
    };
    const file = join(folder, `${name}.json`);
    await writeFile(file, JSON.stringify(volume));
    kubectl('create', '-f', file);
    stack.defer(() => void kubectl('delete', 'pv', name, '--wait=false'));
  }
}

/** Runs kubectl until it ends; for what takes long and is to go on beside the test. */
export function kubectlBeside(...args: string[]): Promise<number | null> {
  const { program, first, env } = kubectlCommand();
  const child = spawn(program, [...first, ...args], { stdio: 'ignore', env });
  const { promise, resolve } = Promise.withResolvers<number | null>();
  child.once('exit', resolve);
  return promise;
}
