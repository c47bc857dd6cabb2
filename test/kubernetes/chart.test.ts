import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubectl, kubectlBeside } from '#test/support/kubernetes/cluster.ts';
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

const RATE_PER_MINUTE = 20;
const WITHIN_MS = 300_000;

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
    expect(kubectl('get', 'pods', '-l', `browser-session-service/session=${id}`)).toBe('');
  });

  it('passes the doctor', () => {
    expect(helm('test', release.name).printed).toContain('Succeeded');
  });
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

/** Creates sessions at a steady rate and stops each; what became of them, and the refusals. */
async function underLoad(work: () => Promise<void>) {
  const acknowledged: string[] = [];
  const refusedAt: number[] = [];
  const over = new AbortController();
  const pauseMs = 60_000 / RATE_PER_MINUTE;
  const load = (async () => {
    while (!over.signal.aborted) {
      const next = new Promise((resolve) => setTimeout(resolve, pauseMs));
      const key = crypto.randomUUID();
      const headers = { 'idempotency-key': key, prefer: 'respond-async' };
      const created = await release
        .request('POST', '/api/sessions', { duration: '2m' }, headers)
        .catch(() => null);
      if (created === null || created.status >= 500) refusedAt.push(Date.now());
      else {
        acknowledged.push(created.body.id);
        setTimeout(
          () =>
            void release.request('DELETE', `/api/sessions/${created.body.id}`).catch(() => null),
          pauseMs,
        );
      }
      await next;
    }
  })();
  await work();
  over.abort();
  await load;
  return { acknowledged, refusedSeconds: (refusedAt.length * pauseMs) / 1000 };
}

/** Each acknowledged session is known once, and ends with none of its browsers left. */
async function expectWhole(acknowledged: readonly string[]): Promise<void> {
  expect(new Set(acknowledged).size).toBe(acknowledged.length);
  for (const id of acknowledged) {
    const hasEnded = async () => {
      const { status, body } = await release.request('GET', `/api/sessions/${id}`);
      return status === 200 && ['stopped', 'failed'].includes(body.status);
    };
    await eventually(hasEnded, `${id} has ended`, WITHIN_MS);
  }
  release.bss('audit', 'ledger');
  const hasNoSession = async () =>
    kubectl('get', 'pods', '-l', 'browser-session-service/session', '-o', 'name') === '';
  await eventually(hasNoSession, 'no browser of a session is left', WITHIN_MS);
}

describe('under twenty creates a minute', () => {
  it('each Pod of the service is deleted in turn, and none acknowledged is lost', async () => {
    const { acknowledged, refusedSeconds } = await underLoad(async () => {
      for (const part of COMPONENTS)
        for (const pod of release.pods(part)) {
          await kubectlBeside('delete', 'pod', pod, '--wait=true');
          await release.untilReady();
        }
    });
    process.stdout.write(`Pods deleted in turn: refused for ${refusedSeconds} s\n`);
    await expectWhole(acknowledged);
  });

  it('the release is upgraded, and none acknowledged is lost', async () => {
    const { acknowledged, refusedSeconds } = await underLoad(async () => {
      await release.upgrade('--reuse-values', '--set', `image.tag=${NEXT_TAG}`);
      await release.untilReady();
    });
    process.stdout.write(`helm upgrade: refused for ${refusedSeconds} s\n`);
    await expectWhole(acknowledged);
  });
});

it('a node that is drained keeps its sessions until they end', async () => {
  const created = await release.request('POST', '/api/sessions', { duration: '10m' });
  const { id } = created.body;
  const node = kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}');
  const browsers = 'browser-session-service/role=browser';
  const draining = kubectlBeside(
    'drain',
    node,
    '--pod-selector',
    browsers,
    '--force',
    '--delete-emptydir-data',
  );
  // Those that are to take their place wait for another node.
  const onNode = ['-l', browsers, '--field-selector', `spec.nodeName=${node}`, '-o', 'name'];
  const isAlone = async () => kubectl('get', 'pods', ...onNode).split('\n').length === 1;
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
    server_id: string;
    status: string;
  }[];
  const second = servers.find(({ server_id: id }) => id === `${release.name}-provisioner-1`);
  expect(second?.status).toBe('left');
  kubectl('scale', 'sts', `${release.name}-provisioner`, '--replicas=2');
});

it('leaves no browser when it is uninstalled', async () => {
  helm('uninstall', release.name, '--wait');
  await eventually(
    async () => release.pods('browser').length === 0,
    'no browser is left',
    WITHIN_MS,
  );
});
