import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SessionState } from '#events/session.ts';
import { eventually } from '#test/support/service/service.ts';
import { auditLog, movesOf, nameOf } from '#test/support/service/audit-event-store.ts';
import { connectionsTo, descendantsOf, stillRunning } from '#test/support/service/processes.ts';
import {
  createWarm,
  onPage,
  openCdp,
  openScreen,
  pageOf,
  reaches,
  readSession,
  startRealService,
  temporaryFiles,
  tracesOf,
  type CreatedSession,
  type RealService,
} from '#test/support/service/real-session.ts';

/** A service that ends with one session that has ended, one in use and one in the queue. */
let service: RealService;
let ended: CreatedSession;
let used: CreatedSession;
let queued: string;

beforeEach(async () => {
  const env = { POOL_MIN_IDLE: '1', POOL_MAX: '1', QUEUE_AFTER: '100ms' };
  service = await startRealService(env);
  ended = await createWarm(service, { session_name: 'ended' });
  await service.request('DELETE', `/api/sessions/${ended.id}`);
  await reaches(service, ended.id, 'stopped');
  used = await createWarm(service, { session_name: 'used', duration: '1h' });
  queued = await queue();
});

afterEach(() => service[Symbol.asyncDispose]());

describe('SIGTERM', () => {
  test('ends every process, and the sessions with the reason `operator`', async () => {
    const driver = await openCdp(used.cdp_url);
    const viewer = await openScreen(used, used.vnc_password);
    const { files } = tracesOf(service, used.autoscaler_workload_id);
    const processes = descendantsOf(service.pid);
    const commands = processes.map(({ command }) => command).join('\n');
    for (const program of ['nats-server', 'redis-server', 'Xtigervnc', 'chromium'])
      expect(commands).toContain(program);
    expect(await service.end('SIGTERM')).toBe(0);
    expect(await driver.closed).toBe(1006);
    // The screen may close before the event store has the reason.
    expect([4005, 4007, 4015]).toContain(await viewer.closed);
    await leavesNothing(processes, files);

    await service.startAgain();
    expect(await readSession(service, ended.id)).toMatchObject({
      status: 'stopped',
      ended_reason: 'user',
    });
    expect(await readSession(service, used.id)).toMatchObject({
      status: 'stopped',
      ended_reason: 'operator',
    });
    await isServed(queued);
    const { sessions, ledgerEvents } = await auditLog(service);
    expect(sessions.get(used.id)?.events.map(nameOf).slice(-2)).toEqual([
      ...['stop-requested', 'stopped'],
    ]);
    expect(movesOf(ledgerEvents, used.id)).toEqual(['slot-reserved', 'slot-released']);
    expectCharged(sessions.get(used.id)?.state);
  });
});

describe('kill -9', () => {
  test('leaves processes, files and sessions that the next start ends, also after a second and third', async () => {
    const { processes: browser, files } = tracesOf(service, used.autoscaler_workload_id);
    const processes = [...descendantsOf(service.pid), ...browser];
    await service.end('SIGKILL');
    expect(stillRunning(browser)).not.toEqual([]);

    await service.startAgain();
    expect(stillRunning(processes)).toEqual([]);
    expect(files()).toEqual([]);
    expect(await readSession(service, used.id)).toMatchObject({
      status: 'failed',
      ended_reason: 'server_lost',
    });
    expect(await readSession(service, ended.id)).toMatchObject({
      status: 'stopped',
      ended_reason: 'user',
    });
    await isServed(queued);
    const { sessions } = await auditLog(service);
    expect([...sessions.keys()].toSorted()).toEqual([ended.id, used.id, queued].toSorted());
    expectCharged(sessions.get(used.id)?.state);
    // Only the new process's browser has files.
    expect(await temporaryFiles(service)).toHaveLength(1);
    expect(await readdir(join(service.dataDir, 'browsers'))).toHaveLength(1);

    const waiting = await queue();
    for (let time = 1; time <= 2; time += 1) {
      await service.end('SIGKILL');
      await service.startAgain();
    }
    expect((await readSession(service, queued)).status).toBe('failed');
    // The second kill may come before the waiting session has its browser, or after.
    const { status, ended_reason: reason } = await eventually(async () => {
      const session = await readSession(service, waiting);
      return ['active', 'failed'].includes(session.status) && session;
    }, 'the waiting one is served, or has lost its browser');
    expect(reason).toBe(status === 'failed' ? 'server_lost' : null);
    await service.request('DELETE', `/api/sessions/${waiting}`);
    await isServed((await createWarm(service)).id);
    await auditLog(service);
    expect(await temporaryFiles(service)).toHaveLength(1);
  });
});

/** A session for which no browser is left, once it is in the queue. */
async function queue(): Promise<string> {
  const prefer = { prefer: 'respond-async' };
  const { body } = await service.request('POST', '/api/sessions', { duration: '1h' }, prefer);
  await reaches(service, body.id, 'queued');
  return body.id as string;
}

/** Waits until the session has a browser of the new process, and drives it. */
async function isServed(id: string): Promise<void> {
  const session = await reaches(service, id, 'active');
  expect(await onPage(session, async (page) => (await page.goto(pageOf('#112233')), 'there'))).toBe(
    'there',
  );
}

/** Each minute that has begun is charged, until the stop or the failure. */
function expectCharged(session: SessionState | undefined): void {
  if (session === undefined) throw new Error('the event store does not have the session');
  const { startedAt, stopRequestedAt, endedAt, creditsUsed } = session;
  const ranMs = Date.parse(stopRequestedAt ?? endedAt ?? '') - Date.parse(startedAt ?? '');
  expect(creditsUsed).toBe(Math.ceil(ranMs / 60_000));
}

async function leavesNothing(
  processes: ReturnType<typeof descendantsOf>,
  files: () => string[],
): Promise<void> {
  await eventually(() => stillRunning(processes).length === 0, 'all its processes are gone');
  expect(files()).toEqual([]);
  expect(await temporaryFiles(service)).toEqual([]);
  expect(await readdir(join(service.dataDir, 'browsers'))).toEqual([]);
  for (const file of ['runtime.json', 'lock', 'nats.pid', 'redis.pid'])
    expect([file, existsSync(join(service.dataDir, file))]).toEqual([file, false]);
  const { api_url: api, gateway_ws_url: plain, gateway_wss_url: tls } = service.runtime;
  for (const url of [api, plain, tls]) {
    const port = Number(new URL(url ?? '').port);
    expect(connectionsTo(port)).toBe(0);
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow('fetch failed');
  }
}
