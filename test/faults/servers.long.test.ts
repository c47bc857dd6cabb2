import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { json } from '#test/support/clients/command-line.ts';

/** Two provisioners, each a process with a server, on one event store and one read model. */

const ENV = {
  MASTER_KEY: 'the-same-in-every-process-of-the-service',
  ...{ POOL_MIN_IDLE: '1', POOL_MAX: '4', POOL_MAX_IDLE: '1', QUEUE_AFTER: '200ms' },
  TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000 } }),
};

let service: RunningService;
let second: RunningService;
let servers: { first: string; second: string };

beforeAll(async () => {
  service = await startService(ENV);
  const first = await serverIds();
  const { nats_url: NATS_URL, redis_url: REDIS_URL } = service.runtime;
  second = await startService({ ...ENV, ROLES: 'provisioner', NATS_URL, REDIS_URL });
  const [other] = (await serverIds()).filter((id) => !first.includes(id));
  servers = { first: first[0] ?? '', second: other ?? '' };
});
afterAll(async () => {
  await second?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
});

async function list(): Promise<{ id: string; status: string; leaks: number }[]> {
  return (await json(service, 'servers', 'list')) as Awaited<ReturnType<typeof list>>;
}
async function serverIds(): Promise<string[]> {
  return (await list()).map(({ id }) => id);
}
async function statusOf(id: string): Promise<string | undefined> {
  return (await list()).find((one) => one.id === id)?.status;
}
async function create(): Promise<{ id: string; status: string; autoscaler_server_id: string }> {
  const { status, body } = await service.request('POST', '/api/sessions', { duration: '1h' });
  expect(status).toBe(201);
  return body;
}
async function read(id: string) {
  return (await service.request('GET', `/api/sessions/${id}`)).body;
}
async function stop(id: string): Promise<void> {
  expect((await service.request('DELETE', `/api/sessions/${id}`)).status).toBe(200);
  await eventually(async () => (await read(id)).status === 'stopped', `${id} has stopped`);
}
async function createMany(count: number) {
  const sessions = [];
  for (const _ of Array.from({ length: count })) sessions.push(await create());
  return sessions;
}

/** Drains a server; resolves once its process knows: until then it may accept a session. */
async function drain(id: string): Promise<void> {
  const { output } = id === servers.first ? service : second;
  const drains = () => output().split('"isDraining":true').length;
  const before = drains();
  await json(service, 'servers', 'drain', id);
  await eventually(() => drains() > before, `${id} drains`);
}

test('sessions are distributed over the servers', async () => {
  const sessions = await createMany(6);
  const on = (server: string) =>
    sessions.filter(({ autoscaler_server_id: id }) => id === server).length;
  expect(on(servers.first) + on(servers.second)).toBe(6);
  expect(Math.min(on(servers.first), on(servers.second))).toBeGreaterThanOrEqual(2);
  for (const { id } of sessions) await stop(id);
});

test('a drained server keeps its sessions and gets no new ones until it is undrained', async () => {
  const sessions = await createMany(4);
  const on = (server: string) => sessions.filter(({ autoscaler_server_id: id }) => id === server);
  // The one that has more of them: the other one has room for two more.
  const isSecond = on(servers.second).length >= on(servers.first).length;
  const drained = isSecond ? servers.second : servers.first;
  const other = isSecond ? servers.first : servers.second;
  const there = on(drained);
  await drain(drained);
  const elsewhere = await createMany(2);
  for (const { id } of elsewhere) expect((await read(id)).autoscaler_server_id).toBe(other);
  for (const { id } of there) expect((await read(id)).status).toBe('active');
  expect(await statusOf(drained)).toBe('draining');

  for (const { id } of there) {
    await stop(id);
    expect(await read(id)).toMatchObject({ status: 'stopped', ended_reason: 'user' });
  }
  await eventually(async () => (await statusOf(drained)) === 'drained', 'it has drained');
  for (const { id } of [...sessions, ...elsewhere])
    if ((await read(id)).status === 'active') await stop(id);
  await json(service, 'servers', 'undrain', drained);
  expect(await statusOf(drained)).toBe('live');
});

test('a create without an available server is refused with the reason of each server', async () => {
  const sessions = await createMany(4);
  await json(service, 'servers', 'drain', servers.second);
  const mine = await json(service, 'servers', 'history', servers.second);
  expect(JSON.stringify(mine)).toContain('server.draining');
  await json(service, 'servers', 'drain', servers.first);
  const refused = await eventually(async () => {
    const answer = await service.request('POST', '/api/sessions', {});
    if (answer.status === 201) await stop(answer.body.id);
    return answer.status === 503 && answer;
  }, 'no server takes sessions');
  expect(refused.body.error).toBe('NO_SERVERS_AVAILABLE');
  expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
  const reasons = refused.body.context.servers.map((one: { reason: string }) => one.reason);
  expect(reasons).toEqual(['draining', 'draining']);
  for (const { id } of sessions) await stop(id);
  for (const id of Object.values(servers)) await json(service, 'servers', 'undrain', id);
});

test('a killed provisioner fails exactly its own sessions, and the queue goes on', async () => {
  const sessions = await createMany(8);
  const [mine, theirs] = [
    sessions.filter(({ autoscaler_server_id: id }) => id === servers.first),
    sessions.filter(({ autoscaler_server_id: id }) => id === servers.second),
  ];
  expect([mine.length, theirs.length]).toEqual([4, 4]);
  const prefer = { prefer: 'respond-async' };
  const asked = await service.request('POST', '/api/sessions', { duration: '1h' }, prefer);
  const { id: waiting } = asked.body;
  await eventually(async () => (await read(waiting)).status === 'queued', 'it waits');

  await second.end('SIGKILL');
  const [unharmed] = mine;
  await stop(unharmed?.id ?? '');
  await eventually(async () => (await read(waiting)).status === 'active', 'the queue goes on');
  for (const { id } of theirs) {
    const isLost = async () => (await read(id)).status === 'failed';
    await eventually(isLost, `${id} is lost`);
    expect((await read(id)).ended_reason).toBe('server_lost');
  }
  for (const { id } of mine.slice(1)) expect((await read(id)).status).toBe('active');
  await eventually(
    async () => (await serverIds()).join() === servers.first,
    'only the first server is left',
  );
  await auditLog(service);

  await second.startAgain();
  expect(await statusOf(servers.second)).toBe('live');
  const next = await create();
  expect((await read(next.id)).autoscaler_server_id).toBe(servers.second);
  for (const { leaks } of await list()) expect(leaks).toBe(0);
});
