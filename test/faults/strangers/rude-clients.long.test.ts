import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { frame, handshake, openRaw } from '#test/support/gateway.fixture.ts';
import { eventually } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { connectionsTo, stillRunning } from '#test/support/service/processes.ts';
import {
  createWarm,
  openCdp,
  openScreen,
  reaches,
  startRealService,
  temporaryFiles,
  tracesOf,
  type CreatedSession,
  type RealService,
} from '#test/support/service/real-session.ts';

/** Clients that break the protocols, at the whole service with a real browser behind it. */
let service: RealService;
let session: CreatedSession;
/** Each port on the way to the session's browser. */
let ports: Record<string, number>;
/** Addresses at the listener without TLS, for clients that write raw frames. */
let urls: { cdp: string; vnc: string };

beforeAll(async () => {
  service = await startRealService({ POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1', POOL_MAX: '2' });
  session = await createWarm(service);
  const { sessions } = await auditLog(service);
  const workload = sessions.get(session.id)?.state.workload;
  const { gateway_ws_url: plain, gateway_wss_url: tls } = service.runtime;
  ports = {
    plain: Number(new URL(plain ?? '').port),
    tls: Number(new URL(tls ?? '').port),
    chromium: workload?.cdp.port ?? 0,
    xvnc: workload?.vnc.port ?? 0,
  };
  urls = { cdp: session.cdp_url, vnc: session.vnc_url.replace(tls ?? '', plain ?? '') };
});

afterAll(() => service[Symbol.asyncDispose]());

const manners: [name: string, rude: (url: string) => Promise<unknown>][] = [
  [
    'sends frames after its Close',
    async (url) => {
      const client = await openRaw(url);
      client.write(Buffer.concat([frame(8, '\x03\xe8'), frame(2, 'more'), frame(8, '\x03\xe8')]));
    },
  ],
  [
    'sends what is no frame',
    async (url) => {
      const client = await openRaw(url);
      client.write(Buffer.alloc(64, 0xff));
    },
  ],
  ['half-closes and stays', async (url) => (await openRaw(url)).end()],
  ['resets', async (url) => (await openRaw(url)).resetAndDestroy()],
  [
    'resets before it has an answer',
    async (url) => {
      const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port) });
      socket.on('error', () => {});
      await new Promise((resolve) => socket.write(handshake(url), resolve));
      socket.resetAndDestroy();
    },
  ],
];

describe.each(['cdp', 'vnc'] as const)('a client of %s', (kind) => {
  test.each(manners)('that %s leaves no socket behind', async (_, rude) => {
    for (let time = 1; time <= 5; time += 1) await rude(urls[kind]);
    await noConnectionIsLeft();
  });
});

test('the session still works', async () => {
  const driver = await openCdp(session.cdp_url);
  expect(driver.reply).toMatchObject({ id: 1, result: { product: expect.any(String) } });
  const viewer = await openScreen(session, session.vnc_password);
  expect(viewer.rfb.width).toBe(1280);
  driver.socket.close();
  viewer.socket.close();
  await noConnectionIsLeft();
});

test('a deleted session closes connections whose clients stopped responding, and ends its browser', async () => {
  const { processes, files } = tracesOf(service, session.autoscaler_workload_id);
  // Clients that keep their socket but neither read nor answer, like one whose cable was pulled.
  const vanished: Socket[] = [];
  for (const url of [urls.cdp, urls.vnc, urls.cdp, urls.vnc])
    vanished.push((await openRaw(url)).pause());
  await eventually(() => connectionsTo(ports['plain'] ?? 0) === 4, 'all four are connected');

  expect((await service.request('DELETE', `/api/sessions/${session.id}`)).status).toBe(200);
  await reaches(service, session.id, 'stopped');
  expect(stillRunning(processes)).toEqual([]);
  expect(files()).toEqual([]);
  // Its process is gone, and the port, an ephemeral one, may be another program's by now.
  delete ports['chromium'];
  await noConnectionIsLeft({});
  // Only the browser that waits for the next session has a folder.
  expect(await temporaryFiles(service)).toHaveLength(1);
  expect(service.output()).not.toContain('"level":50');
  for (const socket of vanished) socket.destroy();
});

/** But for the provisioner's own to the browser, which it observes as long as it runs. */
async function noConnectionIsLeft(own: Record<string, number> = { chromium: 1 }): Promise<void> {
  const open = () =>
    Object.entries(ports)
      .map(([name, port]) => [name, connectionsTo(port)] as const)
      .filter(([name, count]) => count !== (own[name] ?? 0));
  await eventually(() => open().length === 0, 'no connection is left').catch(() =>
    expect(open()).toEqual([]),
  );
}
