import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectApi, errorOf, type ApiClient } from '#test/support/clients/api-client.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';

/** What a kill -9 of the service does not change for its clients. */

let service: RunningService;
let api: ApiClient;
const kept = { 'idempotency-key': 'across-a-restart' };
const extended = { body: { duration: '1h' }, headers: { 'idempotency-key': 'once' } };
beforeAll(async () => {
  service = await startService({ POOL_MIN_IDLE: '1' });
  api = await connectApi(service.apiUrl);
});
afterAll(() => service?.[Symbol.asyncDispose]());

it('keeps sessions, the ledger and Idempotency-Keys', async () => {
  const { id, created_at } = (await api.create({ session_name: 'kept' }, kept)).body;
  const path = `/api/sessions/${id}/extend`;
  const first = await api.send('POST', path, extended);
  const balance = async () => (await api.get('/api/organization')).body.credits;
  const before = await balance();
  await service.end('SIGKILL');
  await service.startAgain();

  const again = await api.create({ session_name: 'kept' }, kept);
  expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, 'true']);
  expect([again.body.id, again.body.created_at]).toEqual([id, created_at]);
  expect(errorOf(await api.create({}, kept))).toBe('409 IDEMPOTENCY_CONFLICT');
  const repeated = await api.send('POST', path, extended);
  expect([repeated.status, repeated.headers['idempotent-replayed']]).toEqual([200, 'true']);
  expect(repeated.body).toEqual(first.body);
  const other = { ...extended, body: { duration: '2h' } };
  expect(errorOf(await api.send('POST', path, other))).toBe('409 IDEMPOTENCY_CONFLICT');

  const session = await eventually(async () => {
    const now = (await api.get(`/api/sessions/${id}`)).body;
    return now.status === 'failed' && now;
  }, 'simulated browsers are gone with their process');
  expect(session).toMatchObject({ ended_reason: 'server_lost', cdp_url: null });
  const used = { reserved: 0, used: 1, granted: before.granted };
  expect(await balance()).toMatchObject(used);
  const another = { ...extended, headers: { 'idempotency-key': 'another' } };
  expect(errorOf(await api.send('POST', path, another))).toBe('409 SESSION_NOT_ACTIVE');
  expect((await api.send('POST', path, extended)).body).toEqual(first.body);
  const { total, sessions } = (await api.get('/api/sessions?status=active')).body;
  expect([total, sessions]).toEqual([0, []]);
});
