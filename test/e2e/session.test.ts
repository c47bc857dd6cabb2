import { afterAll, beforeAll, expect, test } from 'vitest';
import { RfbRefused } from '#test/support/clients/rfb-client.ts';
import { eventually } from '#test/support/service/service.ts';
import { auditLog, movesOf, nameOf } from '#test/support/service/audit-event-store.ts';
import { connectionsTo, stillRunning } from '#test/support/service/processes.ts';
import {
  colourOf,
  createWarm,
  onPage,
  openCdp,
  openScreen,
  pageOf,
  poolOf,
  reaches,
  readSession,
  startRealService,
  temporaryFiles,
  tracesOf,
  type CreatedSession,
  type RealService,
} from '#test/support/service/real-session.ts';

const RED = '#c81e28';
const GREEN = '#1ec828';

/** One life of a session with a real browser, over the whole service, from outside. */
let service: RealService;
let session: CreatedSession;

beforeAll(async () => {
  service = await startRealService({ POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1', POOL_MAX: '2' });
  session = await createWarm(service, { duration: '1h' });
});
afterAll(() => service?.[Symbol.asyncDispose]());

test('its browser answers the first command of a driver', async () => {
  const driver = await openCdp(session.cdp_url);
  expect(driver.reply).toMatchObject({ id: 1, result: { product: expect.any(String) } });
  driver.socket.close();
});

test('a viewer with its password sees what its driver shows', async () => {
  await expect(openScreen(session, 'wrong123')).rejects.toThrow(RfbRefused);
  const { rfb } = await openScreen(session, session.vnc_password);
  for (const colour of [RED, GREEN]) {
    await onPage(session, (page) => page.goto(pageOf(colour)));
    await eventually(async () => (await colourOf(rfb)) === colour, `the screen shows ${colour}`);
  }
  rfb[Symbol.dispose]();
});

test('it is extended once its use is recorded', async () => {
  const isUsed = async () => (await readSession(service, session.id)).last_accessed_at !== null;
  await eventually(isUsed, 'its use is recorded');
  const path = `/api/sessions/${session.id}/extend`;
  const extended = await service.request('POST', path, { duration: '30m' });
  const expiresAt = new Date(Date.parse(session.expires_at) + 30 * 60_000).toISOString();
  expect([extended.status, extended.body.expires_at]).toEqual([200, expiresAt]);
  expect((await readSession(service, session.id)).expires_at).toBe(expiresAt);
});

test('its stop leaves no process, file or socket, and the pool refills', async () => {
  const driver = await openCdp(session.cdp_url);
  const viewer = await openScreen(session, session.vnc_password);
  const { processes, files } = tracesOf(service, session.autoscaler_workload_id);
  // Not all: Chromium ends helpers of its own at any time.
  expect(stillRunning(processes).length).toBeGreaterThan(4);
  expect(files()).not.toEqual([]);

  expect((await service.request('DELETE', `/api/sessions/${session.id}`)).status).toBe(200);
  expect(await viewer.closed).toBe(4001);
  expect(await driver.closed).toBe(1006);
  await reaches(service, session.id, 'stopped');
  expect(stillRunning(processes)).toEqual([]);
  expect(files()).toEqual([]);
  for (const port of gatewayPorts())
    await eventually(() => connectionsTo(port) === 0, `no connection to ${port} is left`);
  await eventually(async () => {
    const { total, idle } = await poolOf(service);
    return total === 1 && idle === 1;
  }, 'the pool is filled again, and has no other browser');
  expect(await temporaryFiles(service)).toHaveLength(1);
});

test('the event store has each of its events once, with its ledger entries', async () => {
  const { sessions, ledgerEvents } = await auditLog(service);
  // Each connect may be recorded.
  const names = sessions.get(session.id)?.events.map(nameOf) ?? [];
  expect([...new Set(names)]).toEqual([
    ...['requested', 'activated', 'accessed', 'extended', 'stop-requested', 'stopped'],
  ]);
  expect(names.filter((name) => name !== 'accessed')).toHaveLength(5);
  expect(movesOf(ledgerEvents, session.id)).toEqual([
    ...['slot-reserved', 'credits-reserved', 'slot-released'],
  ]);
  const { state } = sessions.get(session.id) ?? {};
  expect(state).toMatchObject({ status: 'stopped', creditsReserved: 90 });
  const { startedAt, stopRequestedAt, creditsUsed } = state ?? {};
  const ranMs = Date.parse(stopRequestedAt ?? '') - Date.parse(startedAt ?? '');
  expect(creditsUsed).toBe(Math.ceil(ranMs / 60_000));
});

function gatewayPorts(): number[] {
  const { gateway_ws_url: plain, gateway_wss_url: tls } = service.runtime;
  return [plain, tls].map((url) => Number(new URL(url ?? '').port));
}
