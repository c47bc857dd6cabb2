import CDP from 'chrome-remote-interface';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MASTER_KEY, startSecondApi } from '#test/support/service/two-processes.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';
import { connectApi, type ApiClient } from '#test/support/clients/api-client.ts';
import { freePorts } from '#test/support/servers/ports.ts';

/** The first process has the gateway; the API that is asked runs in the second one. */
let first: RunningService;
let second: RunningService;
let log: ServiceLog;
let client: ApiClient;
let viewer: ApiClient;

beforeAll(async () => {
  const ports = await freePorts(2);
  const range = `${Math.min(...ports)}-${Math.max(...ports)}`;
  first = await startService({ MASTER_KEY, DEBUGGER_PORTS: range });
  const { gateway_ws_url: ws, gateway_wss_url: wss } = first.runtime;
  const gateway = { PUBLIC_GATEWAY_WS_URL: ws ?? '', PUBLIC_GATEWAY_WSS_URL: wss ?? '' };
  second = await startSecondApi(first, gateway);
  log = await openLog(first);
  await log.register('acme', 'pro', 5_000);
  const anybody = await connectApi(second.apiUrl);
  client = anybody.as(await log.issueKey('acme', 'member', anybody));
  viewer = anybody.as(await log.issueKey('acme', 'viewer', anybody));
});
afterAll(async () => {
  await log?.[Symbol.asyncDispose]();
  await second?.[Symbol.asyncDispose]();
  await first?.[Symbol.asyncDispose]();
});

it('a client with a host and a port alone drives a session, until its address is closed', async () => {
  const { body: session } = await client.send('POST', '/api/sessions', { body: {} });
  const path = `/api/sessions/${session.id}/debugger-address`;
  expect((await viewer.send('POST', path)).status).toBe(403);
  const opened = await client.send('POST', path);
  expect(opened).toMatchObject({
    status: 200,
    body: { session_id: session.id, expires_at: session.expires_at },
  });
  const [host = '', port = ''] = String(opened.body.debugger_address).split(':');
  const at = { host, port: Number(port) };
  // Simulated browsers have no protocol document, and no sockets of pages.
  const target = `ws://${host}:${port}/devtools/browser`;
  const driver = await CDP({ ...at, target, local: true });
  expect((await driver.Browser.getVersion()).product).toMatch(/^Simulated/);
  const gone = new Promise((resolve) => driver.on('disconnect', () => resolve('gone')));

  expect((await client.send('POST', `/api/sessions/${session.id}/rotate-access`)).status).toBe(200);
  expect(await gone).toBe('gone');
  await eventually(
    async () =>
      await CDP.Version(at).then(
        () => false,
        () => true,
      ),
    'the port of the old address is closed',
  );
  const again = await client.send('POST', path);
  expect(again.status).toBe(200);
  expect(await client.send('DELETE', path)).toMatchObject({
    status: 200,
    body: { session_id: session.id, closed: 1 },
  });
  await client.send('DELETE', `/api/sessions/${session.id}`);
  expect((await client.send('POST', path)).status).toBe(410);
});
