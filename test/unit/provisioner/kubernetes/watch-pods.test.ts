import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { connectCluster } from '#src/browsers/kubernetes/cluster.ts';
import { metadataOf } from '#src/browsers/kubernetes/naming.ts';
import { watchPods } from '#src/browsers/kubernetes/pods.ts';

const SELECTOR = 'app=browsers';

function podOf(workloadId: string, resourceVersion: string) {
  const metadata = metadataOf({ serverId: 'srv_1', workloadId, isClosed: false });
  return {
    metadata: { ...metadata, uid: `uid-${workloadId}`, resourceVersion },
    spec: { containers: [{ name: 'browser', image: 'browser:1' }] },
    status: { phase: 'Running' },
  };
}

/** An API server that lists what a test says, and passes each watch to it. */
async function startApiServer() {
  let listed = { version: '1', pods: [podOf('wl_one', '1')] };
  let isAway = false;
  const lists: string[] = [];
  const watches: { version: string | null; response: ServerResponse }[] = [];
  const server = createServer(({ url = '' }, response) => {
    if (isAway) return void response.socket?.destroy();
    const query = new URL(url, 'http://server').searchParams;
    if (query.get('watch') !== 'true') {
      // The first question is only whether it answers.
      if (query.get('limit') === null) lists.push(listed.version);
      response.setHeader('content-type', 'application/json');
      const metadata = { resourceVersion: listed.version };
      return void response.end(
        JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata, items: listed.pods }),
      );
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    watches.push({ version: query.get('resourceVersion'), response });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = await mkdtemp(join(tmpdir(), 'bss-api-server-'));
  const { port } = server.address() as AddressInfo;
  const file = join(folder, 'kubeconfig');
  const config = {
    clusters: [
      {
        name: 'one',
        // The client takes plain HTTP only where it is to verify nothing.
        cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true },
      },
    ],
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
    users: [{ name: 'one', user: { token: 'token' } }],
    'current-context': 'one',
  };
  await writeFile(file, JSON.stringify(config));
  return {
    cluster: () => connectCluster({ kubeconfig: file, namespace: 'browsers' }),
    lists,
    watches,
    set(version: string, ...workloadIds: string[]) {
      listed = { version, pods: workloadIds.map((id) => podOf(id, version)) };
    },
    setAway(away: boolean) {
      isAway = away;
    },
    /** The newest watch, once there are so many. */
    async watch(count: number) {
      await expect.poll(() => watches.length, { timeout: 30_000 }).toBe(count);
      const { version, response } = watches[count - 1] as (typeof watches)[number];
      const tell = (type: string, object: object) =>
        response.write(`${JSON.stringify({ type, object })}\n`);
      return { version, tell, end: () => response.end(), cut: () => response.destroy() };
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await rm(folder, { recursive: true });
    },
  };
}

type ApiServer = Awaited<ReturnType<typeof startApiServer>>;

/** Follows the Pods; `told` are the handlers' calls in their order. */
async function follow(server: ApiServer) {
  const told: string[] = [];
  const watcher = await watchPods(await server.cluster(), SELECTOR, {
    onChange: ({ workloadId }) => told.push(`changed ${workloadId}`),
    onGone: ({ workloadId }) => told.push(`gone ${workloadId}`),
    onConnected: async () => void told.push('connected'),
    onDisconnected: () => told.push('disconnected'),
  });
  const untilTold = (...expected: string[]) =>
    expect.poll(() => told, { timeout: 30_000 }).toEqual(expected);
  return { watcher, told, untilTold };
}

const REFUSED = { kind: 'Status', code: 410, message: 'too old resource version: 1 (9)' };

test('Pods are listed, and watched from the version of the list on', async () => {
  await using server = await startApiServer();
  const { watcher, untilTold } = await follow(server);
  await using _ = watcher;
  const { version, tell } = await server.watch(1);
  expect(version).toBe('1');
  tell('ADDED', podOf('wl_two', '2'));
  tell('DELETED', podOf('wl_one', '3'));
  await untilTold('changed wl_one', 'connected', 'changed wl_two', 'gone wl_one');
  expect(watcher.get('wl_two')?.workloadId).toBe('wl_two');
  expect(watcher.get('wl_one')).toBeNull();
});

test('a watch that the server has ended goes on from its last version, without a list', async () => {
  await using server = await startApiServer();
  const { watcher, untilTold } = await follow(server);
  await using _ = watcher;
  const first = await server.watch(1);
  first.tell('MODIFIED', podOf('wl_one', '5'));
  first.tell('BOOKMARK', { kind: 'Pod', metadata: { resourceVersion: '8' } });
  first.end();
  const second = await server.watch(2);
  expect(second.version).toBe('8');
  second.tell('MODIFIED', podOf('wl_one', '9'));
  await untilTold('changed wl_one', 'connected', 'changed wl_one', 'changed wl_one');
  expect(server.lists).toEqual(['1']);
});

test('a version that is no longer kept (410) is followed by a new list: nothing is missed', async () => {
  await using server = await startApiServer();
  const { watcher, untilTold } = await follow(server);
  await using _ = watcher;
  const { tell, end } = await server.watch(1);
  // Meanwhile one browser has gone and another has come, and no change tells of them.
  server.set('9', 'wl_two');
  tell('ERROR', REFUSED);
  end();
  expect((await server.watch(2)).version).toBe('9');
  await untilTold('changed wl_one', 'connected', 'gone wl_one', 'changed wl_two', 'connected');
  expect(server.lists).toEqual(['1', '9']);
});

test('an API server that is away is reported, and its Pods are listed once it is back', async () => {
  await using server = await startApiServer();
  const { watcher, told } = await follow(server);
  await using _ = watcher;
  const { cut } = await server.watch(1);
  server.setAway(true);
  cut();
  await expect.poll(() => told, { timeout: 30_000 }).toContain('disconnected');
  server.set('9', 'wl_one', 'wl_two');
  server.setAway(false);
  expect((await server.watch(2)).version).toBe('9');
  await expect.poll(() => watcher.get('wl_two')?.uid, { timeout: 30_000 }).toBe('uid-wl_two');
});

test('a server that ends each watch at once is not asked without a pause', async () => {
  await using server = await startApiServer();
  const { watcher } = await follow(server);
  await using _ = watcher;
  const begun = performance.now();
  for (let count = 1; count <= 6; count += 1) (await server.watch(count)).end();
  // 100 ms, doubled each time: five pauses.
  expect(performance.now() - begun).toBeGreaterThan(3_000);
});
