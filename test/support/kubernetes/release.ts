import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { Answer } from '#test/support/service/service.ts';
import { docker } from '#test/support/servers/docker-engine.ts';
import { kubectl, kubectlBeside, loadedImage, loadImages, testNamespace } from './cluster.ts';
import { CHART, helm, helmBeside } from './helm.ts';
import { nodeAddress, startNameServer } from './name-server.ts';
import { enforcePolicies } from './policies.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Also in the name of its browsers' namespace, which a run that was killed may have left. */
const NAME = `sessions-${process.pid}`;
const SERVICE_IMAGE = 'browser-session-service:chart';
/** The same program as another image, to upgrade to. */
export const NEXT_TAG = 'chart-next';
const NEXT_IMAGE = `browser-session-service:${NEXT_TAG}`;
const STORES = { nats: 'nats:2', redis: 'redis:7' };
const NATS_NODES = 3;
const READY_WITHIN_S = 600;
const ROLES = [
  'api',
  'projector',
  'gateway',
  'timekeeper',
  'archivist',
  'webhooks',
  'provisioner',
] as const;
/** What a Pod of the release may be, but its browsers. */
export const COMPONENTS = [...ROLES, 'nats', 'redis'] as const;
/** So that all of it fits into a node of two cores. */
const SMALL = { requests: { cpu: '20m', memory: '64Mi' } };
/** The roles, `bss`, NATS and Redis. */
const PARTS = 9;

/** The chart, installed from images that the nodes have, and used from outside of the cluster. */
export type Release = AsyncDisposable & {
  name: string;
  /** The namespace of its browsers. */
  namespace: string;
  apiUrl: string;
  /** An owner's, of the organization that it was installed with. */
  apiKey: string;
  /** Of its gateway; a proxy in front of it would add TLS. */
  gatewayUrl: string;
  /** Installs it again with other values, as `helm upgrade`. */
  upgrade(...values: string[]): Promise<void>;
  request(method: string, path: string, body?: unknown, headers?: object): Promise<Answer>;
  bss(...args: string[]): unknown;
  /** Names of its Pods, of one part. */
  pods(part: (typeof COMPONENTS)[number]): string[];
  /** kubectl in the namespace of its browsers. */
  ofBrowsers(...args: string[]): string;
  /** Resolves once every Pod of it is of the newest state and ready. */
  untilReady(): Promise<void>;
};

export async function installRelease(): Promise<Release> {
  await using stack = new AsyncDisposableStack();
  const namespace = testNamespace();
  buildService();
  loadImages(SERVICE_IMAGE, NEXT_IMAGE, ...Object.values(STORES));
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
    // The cluster has no name server of its own.
    browsers: { image: loadedImage(), requests: { memoryMb: 128, cpus: 0.02 }, dns: '' },
    roles: Object.fromEntries(ROLES.map((role) => [role, { resources: SMALL }])),
    pool: { minIdle: 1, max: 10 },
    nats: { image: STORES.nats, storage: { size: '2Gi', className: '-' }, resources: SMALL },
    redis: { image: STORES.redis, resources: SMALL },
    dnsPolicy: 'None',
    dnsConfig: {
      nameservers: [nameServer],
      searches: [`${namespace}.svc.cluster.local`, 'svc.cluster.local'],
    },
    // The receivers of webhooks are on this machine.
    env: { WEBHOOKS_ALLOW_PRIVATE: 'yes' },
    // Without a proxy in front, clients reach the gateway's Service itself.
    service: { api: { type: 'ClusterIP' }, gateway: { type: 'ClusterIP' } },
  };
  const file = join(folder, 'values.json');
  await writeFile(file, JSON.stringify(values));
  const upgrade = async (...more: string[]) =>
    void (await helmBeside(
      ...['upgrade', '--install', NAME, CHART, '--values', file, ...more],
      ...['--timeout', '10m'],
    ));
  stack.defer(() => void helm('uninstall', NAME, '--wait', '--ignore-not-found'));
  await upgrade();
  const service = (part: string) =>
    kubectl('get', 'service', `${NAME}-${part}`, '-o', 'jsonpath={.spec.clusterIP}');
  const gateway = `ws://${service('gateway')}:8081`;
  await upgrade('--set', `env.PUBLIC_GATEWAY_WS_URL=${gateway}`);
  const apiUrl = `http://${service('api')}:8080`;
  const selector = `app.kubernetes.io/instance=${NAME}`;
  const bss = (...args: string[]): unknown =>
    JSON.parse(kubectl('exec', `deploy/${NAME}-bss`, '--', 'bss', ...args, '--json'));
  async function untilReady(): Promise<void> {
    const parts = kubectl('get', 'deploy,sts', '-l', selector, '-o', 'name').split('\n');
    expect(parts.length).toBeGreaterThanOrEqual(PARTS);
    const within = `--timeout=${READY_WITHIN_S}s`;
    for (const part of parts) await kubectlBeside('rollout', 'status', part, within);
  }
  await untilReady();
  const made = bss('orgs', 'create', '--name', 'Acme', '--tier', 'max');
  const { organization_id: org } = made as { organization_id: string };
  const issued = bss('keys', 'issue', '--org', org, '--role', 'owner', '--user', 'ann');
  const { api_key: apiKey } = issued as { api_key: string };
  const all = stack.move();
  return {
    name: NAME,
    namespace: `${NAME}-browsers`,
    apiUrl,
    apiKey,
    gatewayUrl: gateway,
    upgrade,
    bss,
    untilReady,
    async request(method, path, body, headers = {}) {
      const response = await fetch(apiUrl + path, {
        method,
        headers: {
          authorization: `Bearer ${apiKey}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.includes('json') === true;
      const answered = isJson ? JSON.parse(text) : {};
      return { status: response.status, headers: response.headers, body: answered };
    },
    pods(part) {
      const chosen = `${selector},app.kubernetes.io/component=${part}`;
      return kubectl('get', 'pods', '-l', chosen, '-o', 'jsonpath={.items[*].metadata.name}')
        .split(' ')
        .filter(Boolean);
    },
    ofBrowsers: (...args) => kubectl('--namespace', `${NAME}-browsers`, ...args),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

function buildService(): void {
  docker('build', '-q', '-t', SERVICE_IMAGE, '-f', join(ROOT, 'deploy/Dockerfile'), ROOT);
  const changed = `FROM ${SERVICE_IMAGE}\nLABEL changed=yes\n`;
  execFileSync('docker', ['build', '-q', '-t', NEXT_IMAGE, '-'], {
    input: changed,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
}

/** Volumes on the node for NATS: the cluster has no storage class. */
async function makeVolumes(stack: AsyncDisposableStack, folder: string): Promise<void> {
  for (let at = 0; at < NATS_NODES; at += 1) {
    const path = join(folder, `volume-${at}`);
    await mkdir(path);
    // Its own mode is less what this process masks.
    await chmod(path, 0o777);
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
