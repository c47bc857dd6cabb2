import { afterAll, beforeAll, expect, it } from 'vitest';
import { createClient } from '#src/apps/client/client.ts';
import {
  DEV_KEY,
  eventually,
  startService,
  type RunningService,
} from '#test/support/service/service.ts';
import {
  connectApi,
  errorOf,
  timestamp,
  type ApiClient,
} from '#test/support/clients/api-client.ts';
import { auditLog, movesOf } from '#test/support/service/audit-event-store.ts';
import { poolOf } from '#test/support/service/real-session.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';

/** One browser and one place in the queue: the answers to the second and third create. */

let service: RunningService;
let api: ApiClient;
let log: ServiceLog;

beforeAll(async () => {
  service = await startService({
    POOL_MAX: '1',
    POOL_MIN_IDLE: '1',
    CREATE_WAIT: '300ms',
    QUEUE_AFTER: '100ms',
    QUEUE_MAX: '1',
  });
  api = await connectApi(service.apiUrl);
  log = await openLog(service);
});
afterAll(async () => {
  await log?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
});

async function startAgain(env: Record<string, string>): Promise<void> {
  await service.end('SIGTERM');
  await log[Symbol.asyncDispose]();
  await service.startAgain(env);
  log = await openLog(service);
}

async function becomes(id: string, status: string) {
  return eventually(async () => {
    const { body } = await api.get(`/api/sessions/${id}`);
    return body.status === status && body;
  }, `${id} is ${status}`);
}

it('a create without a free browser is answered without one, and the session gets the next one', async () => {
  const created = await api.create({ session_name: 'first' });
  const first = await becomes(created.body.id, 'active');

  const second = await api.create({ session_name: 'second' });
  expect(second.status).toBe(201);
  const nothingYet = { started_at: null, vnc_password: null, autoscaler_workload_id: null };
  expect(second.body).toMatchObject({ ...nothingYet, status: /^(creating|queued)$/ });
  const { id } = second.body;
  expect(await becomes(id, 'queued')).toMatchObject(nothingYet);

  const access = await api.get(`/api/sessions/${id}/access`);
  expect(errorOf(access)).toBe('409 SESSION_NOT_READY');
  expect(access.body.context).toEqual({ session_id: id, status: 'queued' });

  const third = await api.create({ session_name: 'third' });
  expect(errorOf(third)).toBe('503 NO_SERVERS_AVAILABLE');
  expect(third.body.context.servers).toEqual([
    { server_id: first.autoscaler_server_id, pool_max: 1, reason: 'full' },
  ]);

  await api.stop(first.id);
  const served = await becomes(id, 'active');
  expect(served).toMatchObject({ started_at: timestamp, vnc_password: /\S{8,}/ });
  // Its address was final from the first answer on.
  expect(served.cdp_url).toBe(second.body.cdp_url);
  expect((await api.get(`/api/sessions/${id}/access`)).status).toBe(200);
  await api.stop(id);
  await becomes(id, 'stopped');
});

it('a queued session can be extended and stopped, which frees its place', async () => {
  const first = (await api.create()).body;
  const { id, expires_at } = (await api.create({ duration: '1h' })).body;
  const extended = await api.extend(id, '1h');
  expect(extended.status).toBe(200);
  expect(Date.parse(extended.body.expires_at) - Date.parse(expires_at)).toBe(3_600_000);
  await api.stop(id);
  const { body } = await api.get(`/api/sessions/${id}`);
  expect(body).toMatchObject({ status: 'stopped', ended_reason: 'user', credits_used: 0 });

  const next = (await api.create()).body;
  await api.stop(first.id);
  await becomes(next.id, 'active');
  await api.stop(next.id);
  await becomes(next.id, 'stopped');
});

it('the client waits for a queued session, and tells why it ended', async () => {
  const { sessions } = createClient({ url: service.apiUrl, apiKey: DEV_KEY });
  const first = await sessions.create({ duration: '5m' });
  const second = await sessions.create({ duration: '5m' }, { waitMs: 0 });
  expect(second.status).toMatch(/^(creating|queued)$/);
  await expect(sessions.waitUntilActive(second.id, { waitMs: 200 })).rejects.toMatchObject({
    error: 'SESSION_NOT_READY',
  });
  const waiting = sessions.waitUntilActive(second.id);
  await first.stop();
  expect(await waiting).toMatchObject({ id: second.id, status: 'active' });
  const third = await sessions.create({ duration: '5m' }, { waitMs: 0 });
  // Expected before the stop is answered, since the wait may end first.
  const failed = expect(sessions.waitUntilActive(third.id)).rejects.toMatchObject({
    error: 'SESSION_ENDED',
    context: { ended_reason: 'user' },
  });
  await third.stop();
  await failed;
  await second.stop();
  await becomes(second.id, 'stopped');
});

it('a session that waits too long fails with queue_timeout, and costs nothing', async () => {
  await startAgain({ QUEUE_TIMEOUT: '4s' });
  const first = await becomes((await api.create()).body.id, 'active');
  const before = await log.ledger('dev');
  const { id } = (await api.create({ session_name: 'in vain' })).body;
  const failed = await becomes(id, 'failed');
  expect(failed).toMatchObject({ ended_reason: 'queue_timeout', credits_used: 0, cdp_url: null });
  expect(Date.parse(failed.ended_at) - Date.parse(failed.created_at)).toBeGreaterThanOrEqual(4_000);
  const ended = (before?.sessionsEnded ?? 0) + 1;
  expect(await log.ledger('dev')).toEqual({ ...before, sessionsEnded: ended });
  const { ledgerEvents } = await auditLog(service);
  expect(movesOf(ledgerEvents, id)).toEqual(['slot-reserved', 'slot-released']);
  expect(errorOf(await api.get(`/api/sessions/${id}/access`))).toBe('410 SESSION_ENDED');
  await api.stop(first.id);
  await becomes(first.id, 'stopped');
});

it('without a queue, a create that finds the pool full is refused and has no effect', async () => {
  await startAgain({ QUEUE_MAX: '0' });
  const headers = { 'idempotency-key': 'the-first' };
  const first = await becomes((await api.create({}, headers)).body.id, 'active');
  // Its browser counts as busy a moment later.
  await eventually(async () => (await poolOf(service))['busy'] === 1, 'the pool is full');
  const before = await log.ledger('dev');
  const { total } = (await api.get('/api/sessions')).body;
  const refused = await api.create();
  expect(errorOf(refused)).toBe('503 NO_SERVERS_AVAILABLE');
  expect(refused.body.context).toMatchObject({ waiting: 0, queue_max: 0 });
  // A repeated request needs no further browser.
  const again = await api.create({}, headers);
  expect([again.status, again.body.id]).toEqual([201, first.id]);
  expect(await log.ledger('dev')).toEqual(before);
  expect((await api.get('/api/sessions')).body.total).toBe(total);
});
