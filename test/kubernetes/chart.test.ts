import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  kubectl,
  kubectlBeside,
  kubectlSays,
  loadedImage,
  testNamespace,
} from '#test/support/kubernetes/cluster.ts';
import { jsonFile } from '#test/support/kubernetes/pods.ts';
import { expectWhole, underLoad } from '#test/support/kubernetes/steady-load.ts';
import { nodeAddress } from '#test/support/kubernetes/name-server.ts';
import { helm } from '#test/support/kubernetes/helm.ts';
import {
  COMPONENTS,
  installRelease,
  NEXT_TAG,
  type Release,
} from '#test/support/kubernetes/release.ts';
import { colourOf, onPage, openScreen, pageOf } from '#test/support/service/real-session.ts';
import { eventually } from '#test/support/service/service.ts';
import { startReceiver } from '#test/support/webhooks/receiver.ts';

/** The chart on a real cluster, installed from local images and used from outside. */

const WITHIN_MS = 300_000;
const BROWSERS = 'browser-session-service/role=browser';

let release: Release;
beforeAll(async () => {
  release = await installRelease();
}, 1_200_000);
afterAll(() => release?.[Symbol.asyncDispose](), 600_000);

describe('the story of a session', () => {
  it('is created, driven, watched, extended and stopped', async () => {
    const created = await release.request('POST', '/api/sessions', { duration: '10m' });
    expect([created.status, created.body.status]).toEqual([201, 'active']);
    const { id, vnc_url: wss, vnc_password: password } = created.body;
    const colour = await onPage(created.body, async (page) => {
      await page.goto(pageOf('#c01020'));
      return page.evaluate('getComputedStyle(document.body).backgroundColor');
    });
    expect(colour).toBe('rgb(192, 16, 32)');
    const vnc_url = release.gatewayUrl + new URL(wss).pathname;
    const { rfb, socket } = await openScreen({ vnc_url }, password);
    await expect.poll(() => colourOf(rfb)).toBe('#c01020');
    socket.close();
    const picture = await release.request('GET', `/api/sessions/${id}/screenshot`);
    expect(picture.status).toBe(200);
    const extended = await release.request('POST', `/api/sessions/${id}/extend`, {
      duration: '5m',
    });
    expect(extended.status).toBe(200);
    expect((await release.request('DELETE', `/api/sessions/${id}`)).status).toBeLessThan(300);
    const hasEnded = async () =>
      (await release.request('GET', `/api/sessions/${id}`)).body.status === 'stopped';
    await eventually(hasEnded, 'the session has ended');
    const label = `browser-session-service/session=${id}`;
    expect(release.ofBrowsers('get', 'pods', '-l', label)).toBe('');
  });

  it('passes the doctor', () => {
    expect(helm('test', release.name).printed).toContain('Succeeded');
  });
});

describe('an attacker who takes over a provisioner', () => {
  /** As the administrator who acts as its service account; the namespace is that of the release. */
  const asProvisioner = () =>
    `--as=system:serviceaccount:${testNamespace()}:${release.name}-provisioner`;

  it('may do nothing to Pods and Secrets of the release’s own namespace', () => {
    const may = (...args: string[]) => kubectlSays('auth', 'can-i', ...args, asProvisioner());
    const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'watch'];
    for (const resource of ['pods', 'secrets', 'configmaps'])
      for (const verb of verbs)
        expect([verb, resource, may(verb, resource)]).toEqual([verb, resource, 'no']);
    for (const [resource = '', subresource] of [
      'pods/exec',
      'pods/log',
      'serviceaccounts/token',
    ].map((one) => one.split('/')))
      for (const verb of ['create', 'get'])
        expect(may(verb, resource, `--subresource=${subresource}`)).toBe('no');
    expect(may('get', `statefulsets/${release.name}-provisioner`)).toBe('yes');
    expect(may('get', `statefulsets/${release.name}-nats`)).toBe('no');
    const there = ['--namespace', release.namespace];
    expect(may('create', 'pods', ...there)).toBe('yes');
    expect(may('get', 'secrets', ...there)).toBe('no');
    expect(may('create', 'pods', '--namespace', 'kube-system')).toBe('no');
  });

  it('starts no Pod with rights on a node, and none with a Secret of the service', () => {
    const create = (spec: object) => {
      const name = 'taken-over';
      const containers = [{ name, image: loadedImage(), command: ['sleep', 'infinity'], ...spec }];
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers } };
      const file = jsonFile(pod);
      return () => release.ofBrowsers('create', '-f', file, asProvisioner());
    };
    expect(create({ securityContext: { privileged: true } })).toThrow(/violates PodSecurity/);
    expect(create({})).toThrow(/violates PodSecurity/);
    const secrets = release.ofBrowsers('get', 'secrets', '-o', 'name');
    expect(secrets).not.toContain(`${release.name}-secrets`);
  });
});

it('a browser reaches nothing of the service, and the service the browser', async () => {
  const { body } = await release.request('POST', '/api/sessions', { duration: '10m' });
  const label = `browser-session-service/session=${body.id}`;
  const pod = release.ofBrowsers('get', 'pods', '-l', label, '-o', 'name');
  const addresses = ['nats', 'redis', 'api', 'gateway', 'provisioner'].map((part) => {
    const [first = ''] = release.pods(part as 'api');
    return kubectl('get', 'pod', first, '-o', 'jsonpath={.status.podIP}');
  });
  const ports = [4222, 6379, 8080, 8081, 9464];
  const tried = addresses.map((address, at) => `${address}/${ports[at]}`);
  const script = 'for one; do timeout 3 bash -c "exec 3<>/dev/tcp/$one" 2>&- && echo $one; done; :';
  const run = ['--container', 'browser', '--', 'bash', '-c', script, 'tries', ...tried];
  expect(tried.every((one) => /^\d+\.\d+\.\d+\.\d+\/\d+$/.test(one))).toBe(true);
  expect(release.ofBrowsers('exec', pod, ...run)).toBe('');
  // All of them listen: a Pod of the service reaches them.
  const [own = ''] = release.pods('archivist');
  expect(kubectl('exec', own, '--', ...run.slice(3)).split('\n')).toEqual(tried);
  expect(await onPage(body, (page) => page.evaluate('1 + 1'))).toBe(2);
  await release.request('DELETE', `/api/sessions/${body.id}`);
});

it('tells KEDA how many sessions run', async () => {
  const { body } = await release.request('POST', '/api/sessions', { duration: '10m' });
  const secret = ['get', 'secret', `${release.name}-secrets`];
  const encoded = kubectl(...secret, '-o', 'jsonpath={.data.metrics_token}');
  const authorization = `Bearer ${Buffer.from(encoded, 'base64').toString()}`;
  const busy = async () => {
    const answer = await fetch(`${release.apiUrl}/metrics`, { headers: { authorization } });
    return (await answer.text()).split('\n');
  };
  await expect.poll(busy).toContain('bss_pool_browsers{state="busy"} 1');
  await release.request('DELETE', `/api/sessions/${body.id}`);
});

describe('the other doors', () => {
  it('WebDriver at /wd/hub drives a browser, and its quit stops the session', async () => {
    const capabilities = { alwaysMatch: { browserName: 'chrome' } };
    const begun = await release.request('POST', '/wd/hub/session', { capabilities });
    expect([begun.status, begun.body]).toEqual([200, expect.anything()]);
    const { sessionId, capabilities: got } = begun.body.value;
    const { id } = got['bss:session'];
    const path = `/wd/hub/session/${sessionId}`;
    const url = 'data:text/html,<title>On a Pod</title>';
    expect((await release.request('POST', `${path}/url`, { url })).status).toBe(200);
    expect((await release.request('GET', `${path}/title`)).body).toEqual({ value: 'On a Pod' });
    expect((await release.request('DELETE', path)).status).toBe(200);
    const hasEnded = async () =>
      (await release.request('GET', `/api/sessions/${id}`)).body.ended_reason === 'user';
    await eventually(hasEnded, 'the session is stopped');
  });

  it('a session of an MCP client ends with it', async () => {
    const client = new Client({ name: 'chart', version: '1' });
    const requestInit = { headers: { authorization: `Bearer ${release.apiKey}` } };
    const url = new URL('/mcp', release.apiUrl);
    const transport = new StreamableHTTPClientTransport(url, { requestInit });
    await client.connect(transport);
    const made = await client.callTool({ name: 'create_session', arguments: {} });
    expect(made.isError).not.toBe(true);
    const { id } = made.structuredContent as { id: string };
    await transport.terminateSession();
    await client.close();
    const hasEnded = async () =>
      (await release.request('GET', `/api/sessions/${id}`)).body.status === 'stopped';
    await eventually(hasEnded, 'the session has ended with its client');
  });

  it('a webhook gets the events of a session, in their order', async () => {
    let secret = '';
    const address = await nodeAddress(kubectl);
    await using receiver = await startReceiver(() => secret, undefined, address);
    const types = ['session.requested', 'session.stopped'];
    const added = await release.request('POST', '/api/webhooks', { url: receiver.url, types });
    expect([added.status, added.body]).toEqual([201, expect.anything()]);
    secret = added.body.secret;
    const { body } = await release.request('POST', '/api/sessions', { duration: '2m' });
    await release.request('DELETE', `/api/sessions/${body.id}`);
    const ours = () => receiver.received.filter(({ data }) => data.subject.includes(body.id));
    await eventually(() => ours().length >= types.length, 'both events', WITHIN_MS);
    expect(ours().map(({ type }) => type)).toEqual(types);
    expect(receiver.refused).toEqual([]);
    await release.request('DELETE', `/api/webhooks/${added.body.id}`);
  });
});

describe('under twenty creates a minute', () => {
  it('each Pod of the service is deleted in turn, and none acknowledged is lost', async () => {
    const { acknowledged, refusedSeconds } = await underLoad(release, async () => {
      for (const part of COMPONENTS)
        for (const pod of release.pods(part)) {
          await kubectlBeside('delete', 'pod', pod, '--wait=true');
          await release.untilReady();
        }
    });
    process.stdout.write(`Pods deleted in turn: refused for ${refusedSeconds} s\n`);
    await expectWhole(release, acknowledged);
  });

  it('the release is upgraded, and none acknowledged is lost', async () => {
    const { acknowledged, refusedSeconds } = await underLoad(release, async () => {
      await release.upgrade('--reuse-values', '--set', `image.tag=${NEXT_TAG}`);
      await release.untilReady();
    });
    process.stdout.write(`helm upgrade: refused for ${refusedSeconds} s\n`);
    await expectWhole(release, acknowledged);
  });
});

it('a node that is drained keeps its sessions until they end', async () => {
  const created = await release.request('POST', '/api/sessions', { duration: '10m' });
  const { id } = created.body;
  const node = kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}');
  const draining = kubectlBeside(
    'drain',
    node,
    '--pod-selector',
    BROWSERS,
    '--force',
    '--delete-emptydir-data',
  );
  // Those that are to take their place wait for another node.
  const onNode = ['-l', BROWSERS, '--field-selector', `spec.nodeName=${node}`, '-o', 'name'];
  const isAlone = async () => release.ofBrowsers('get', 'pods', ...onNode).split('\n').length === 1;
  await eventually(isAlone, 'idle browsers are evicted', WITHIN_MS);
  expect((await release.request('GET', `/api/sessions/${id}`)).body.status).toBe('active');
  await release.request('DELETE', `/api/sessions/${id}`);
  await draining;
  kubectl('uncordon', node);
  await release.untilReady();
});

it('a provisioner that is scaled away ends once its sessions have', async () => {
  kubectl('scale', 'sts', `${release.name}-provisioner`, '--replicas=1');
  const isOne = async () => release.pods('provisioner').length === 1;
  await eventually(isOne, 'the second provisioner has ended', WITHIN_MS);
  const servers = release.bss('servers', 'list', '--all') as {
    id: string;
    status: string;
  }[];
  const second = servers.find(({ id }) => id === `${release.name}-provisioner-1`);
  expect(second?.status).toBe('left');
  kubectl('scale', 'sts', `${release.name}-provisioner`, '--replicas=2');
});

it('leaves no browser when it is uninstalled, nor their namespace', async () => {
  expect(release.ofBrowsers('get', 'pods', '-l', BROWSERS, '-o', 'name')).not.toBe('');
  helm('uninstall', release.name, '--wait');
  const isGone = async () =>
    kubectl('get', 'namespace', release.namespace, '--ignore-not-found') === '';
  await eventually(isGone, 'no browser is left', WITHIN_MS);
});
