import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createLinkKeys } from '#src/browsers/link/browser-link.ts';
import { readVersion } from '#src/browsers/chromium/version.ts';
import { docker, hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { attachPage, evaluate, openCdp } from '#test/support/browsers/browsers.fixture.ts';
import type { Cdp } from '#test/support/browsers/browsers.fixture.ts';
import {
  DEV_KEY,
  eventually,
  startService,
  type RunningService,
} from '#test/support/service/service.ts';
import { failToStart } from '#test/support/service/main-process.ts';
import { createWarm, type CreatedSession } from '#test/support/service/real-session.ts';

const MASTER_KEY = 'wB7nQz2xLr9kVt4mYc8pHd3gSj6eUf1a';
const TIERS = JSON.stringify({ max: { requests_per_minute: 1_000_000 } });

test('the start fails and names DOCKER_HOST if no Docker engine answers', async () => {
  const env = { BROWSERS: 'docker', DOCKER_HOST: 'unix:///nowhere/docker.sock' };
  const { code, said } = await failToStart(env);
  expect(code).toBe(1);
  expect(said).toMatch(/DOCKER_HOST: no Docker engine answers at unix:\/\/\/nowhere/);
});

describe.runIf(hasDocker())('the service with Docker browsers', () => {
  let service: RunningService;
  beforeAll(async () => {
    service = await startService({
      BROWSERS: 'docker',
      DOCKER_NETWORK: testNetwork(),
      // On every address of the machine: what sessions do not reach is not merely elsewhere.
      HOST: '0.0.0.0',
      POOL_MIN_IDLE: '1',
      MASTER_KEY,
      TIERS,
    });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  test('runs a session, whose browser cannot reach the API or the gateway', async () => {
    const session = await createWarm(service);
    using cdp = await attach(session);
    const page = await attachPage(cdp);
    const screenshot = await fetch(`${service.apiUrl}/api/sessions/${session.id}/screenshot`, {
      headers: { authorization: `Bearer ${DEV_KEY}` },
    });
    expect([screenshot.status, (await screenshot.arrayBuffer()).byteLength > 500]).toEqual([
      200,
      true,
    ]);
    const format = '{{(index .IPAM.Config 0).Gateway}}';
    const gateway = docker('network', 'inspect', '--format', format, testNetwork());
    const { gateway_ws_url: plain, gateway_wss_url: tls } = service.runtime;
    for (const port of [service.apiUrl, plain, tls].map((url) => Number(new URL(url ?? '').port))) {
      const socket = connect(port, gateway);
      await once(socket, 'connect');
      socket.destroy();
      const params = { url: `http://${gateway}:${port}/` };
      const { errorText } = await cdp.send('Page.navigate', params, page);
      expect([port, errorText]).toEqual([port, 'net::ERR_CONNECTION_REFUSED']);
    }
    await end(session);
  });

  test('fails a session after its container is killed, and no other session', async () => {
    const other = await createWarm(service);
    using watched = await attach(other);
    await killOne();
    expect(await watched.send('Browser.getVersion')).toMatchObject({ protocolVersion: '1.3' });
    await end(other);
  });

  test('stops a session whose browser was closed, also while the service was down', async () => {
    const [one, other] = [await createWarm(service), await createWarm(service)];
    const closedByUser = { status: 'stopped', ended_reason: 'browser_closed', credits_used: 1 };
    {
      using cdp = await attach(one);
      await cdp.send('Browser.close').catch(() => undefined);
    }
    expect(await ended(one)).toMatchObject(closedByUser);

    const container = await containerOf(other);
    const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}';
    const host = docker('inspect', '--format', format, container);
    const workload = docker(
      ...['inspect', '--format', '{{index .Config.Labels "browser-session-service.workload"}}'],
      container,
    );
    const linkKey = createLinkKeys(Buffer.from(MASTER_KEY))(workload);
    const address = { host, port: 9223, linkKey };
    const { webSocketDebuggerUrl } = await readVersion(address, AbortSignal.timeout(10_000));
    await service.end('SIGKILL');
    {
      using cdp = await openCdp({ ...address, path: new URL(webSocketDebuggerUrl).pathname });
      await cdp.send('Browser.close').catch(() => undefined);
    }
    const state = () => docker('inspect', '--format', '{{.State.Status}}', container);
    await eventually(() => state() === 'exited', 'its container has ended');
    await service.startAgain();
    expect(await ended(other)).toMatchObject(closedByUser);
    expect(docker('ps', '-aq', '--filter', `id=${container}`)).toBe('');
  }, 120_000);

  test('keeps its sessions over a kill -9, and ends them like before', async () => {
    const session = await createWarm(service);
    {
      using cdp = await attach(session);
      await evaluate(cdp, await attachPage(cdp), 'document.title = "still here"');
    }
    await service.end('SIGKILL');
    await service.startAgain();
    const { body } = await service.request('GET', `/api/sessions/${session.id}`);
    expect(body).toMatchObject({ status: 'active', cdp_url: session.cdp_url });
    using cdp = await attach(session);
    expect(await evaluate(cdp, await attachPage(cdp), 'document.title')).toBe('still here');
    const container = await containerOf(session);
    await end(session);
    await eventually(() => docker('ps', '-aq', '--filter', `id=${container}`) === '', 'it is gone');
  });

  /** Kills the container of a new session, which has to fail. */
  async function killOne(): Promise<void> {
    const struck = await createWarm(service);
    const socket = new WebSocket(struck.cdp_url);
    await once(socket, 'open');
    const closed = once(socket, 'close');
    const viewer = new WebSocket(struck.vnc_url, 'binary', { rejectUnauthorized: false });
    await once(viewer, 'open');
    const viewerClosed = once(viewer, 'close');

    docker('kill', await containerOf(struck));
    const { body } = await eventually(async () => {
      const answer = await service.request('GET', `/api/sessions/${struck.id}`);
      return answer.body.status === 'failed' && answer;
    }, 'the session has failed');
    expect(body.ended_reason).toBe('browser_crashed');
    await Promise.all([closed, viewerClosed]);
  }

  /** The engine's id of a session's container, once its name has the session's id. */
  function containerOf({ id }: CreatedSession): Promise<string> {
    const find = () => docker('ps', '-q', '--filter', `name=\\.${id}$`);
    return eventually(() => find() || null, `a container has the name of ${id}`);
  }

  /** The session once it has ended. */
  async function ended({ id }: CreatedSession) {
    return eventually(async () => {
      const { body } = await service.request('GET', `/api/sessions/${id}`);
      return body.ended_at !== null && body;
    }, `${id} has ended`);
  }

  async function end({ id }: CreatedSession): Promise<void> {
    await service.request('DELETE', `/api/sessions/${id}`);
  }

  function attach({ cdp_url }: CreatedSession): Promise<Cdp> {
    const { hostname, port, pathname } = new URL(cdp_url);
    return openCdp({ host: hostname, port: Number(port), path: pathname });
  }
});
