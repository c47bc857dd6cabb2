import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import {
  asKey,
  newKey,
  newOrganization,
  untilAnswered,
} from '#test/support/clients/command-line.ts';

/** Two provisioner processes with four browsers each, and the other roles in a third process. */

const ENV = {
  MASTER_KEY: 'the-same-in-every-process-of-the-service',
  ...{ POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '4', POOL_MAX: '4', QUEUE_AFTER: '200ms' },
  QUEUE_TIMEOUT: '10m',
  QUEUE_MAX: '200',
  TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000 } }),
};
const ROOM = 8;
const WAITING = 40;

let front: RunningService;
let servers: RunningService[];
let other: { id: string; key: string };

beforeAll(async () => {
  front = await startService({ ...ENV, ROLES: 'api,gateway,projector,timekeeper' });
  const { nats_url: NATS_URL, redis_url: REDIS_URL } = front.runtime;
  const env = { ...ENV, ROLES: 'provisioner', NATS_URL, REDIS_URL };
  servers = [await startService(env), await startService(env)];
  const id = await newOrganization(front, '--tier', 'free');
  const { api_key: key } = await newKey(front, id, 'owner');
  await untilAnswered(front, key, 200);
  other = { id, key };
});
afterAll(async () => {
  for (const server of servers ?? []) await server[Symbol.asyncDispose]();
  await front?.[Symbol.asyncDispose]();
});

async function createMany(count: number): Promise<string[]> {
  const ids: string[] = [];
  const prefer = { prefer: 'respond-async' };
  for (const _ of Array.from({ length: count })) {
    const { status, body } = await front.request('POST', '/api/sessions', {}, prefer);
    expect([status, body]).toMatchObject([201, { id: expect.any(String) }]);
    ids.push(body.id);
  }
  return ids;
}
async function active(): Promise<{ id: string }[]> {
  return eventually(async () => {
    const path = '/api/sessions?status=active&limit=100';
    const { status, body } = await front.request('GET', path);
    return status === 200 && (body.sessions as { id: string }[]);
  }, 'the list answers');
}
async function untilActive(count: number): Promise<{ id: string }[]> {
  return eventually(async () => {
    const sessions = await active();
    return sessions.length === count && sessions;
  }, `${count} sessions are active`);
}
async function stop(id: string): Promise<void> {
  expect((await front.request('DELETE', `/api/sessions/${id}`)).status).toBe(200);
}

/**
 * How many sessions of the first organization a server accepted while the session waited for that:
 * a busy server may activate a session later than another one that was accepted after it.
 */
async function servedBefore(id: string): Promise<number> {
  const accepting = ['session.assigned', 'session.activated'];
  const acceptedAt = (events: readonly { type: string; sequence: number }[]) =>
    events.find(({ type }) => accepting.includes(type))?.sequence ?? Infinity;
  const mine = (await auditLog(front, other.id)).sessions.get(id)?.events ?? [];
  const [from, to] = [mine[0]?.sequence ?? Infinity, acceptedAt(mine)];
  const { sessions } = await auditLog(front);
  const served = [...sessions.values()].map(({ events }) => acceptedAt(events));
  return served.filter((sequence) => sequence > from && sequence < to).length;
}

test('with forty requests of one organization waiting, the one of another gets the next free browser but one at the latest, and kill -9 of a provisioner loses none', async () => {
  const ids = await createMany(ROOM + WAITING);
  const [first] = await untilActive(ROOM);
  const created = await asKey(front, other.key, 'POST', '/api/sessions', {});
  const late = created.body.id as string;
  const readLate = () => asKey(front, other.key, 'GET', `/api/sessions/${late}`);
  expect((await readLate()).body.status).toBe('queued');

  await stop(first?.id ?? '');
  await eventually(async () => {
    const { status } = (await readLate()).body;
    if (status !== 'active') for (const { id } of (await active()).slice(0, 1)) await stop(id);
    return status === 'active';
  }, 'it is served');
  const before = await servedBefore(late);
  expect(before).toBeLessThanOrEqual(1);
  await asKey(front, other.key, 'DELETE', `/api/sessions/${late}`);

  // Some items of the queue were given back, and some are of sessions that were served already.
  for (const { id } of (await untilActive(ROOM)).slice(0, 3)) await stop(id);
  await servers[1]?.end('SIGKILL');
  await servers[1]?.startAgain();
  const isEnded = ({ status }: { status: string }) => status === 'stopped' || status === 'failed';
  await eventually(async () => {
    for (const { id } of await active()) await stop(id);
    const { sessions } = await auditLog(front);
    return ids.every((id) => isEnded(sessions.get(id)?.state ?? { status: '' }));
  }, 'all have been served');
  const { sessions } = await auditLog(front);
  const reasons = [...sessions.values()].map(({ state }) => state.endedReason);
  expect(reasons.filter((reason) => reason !== 'user' && reason !== 'server_lost')).toEqual([]);
  const ran = [...sessions.values()].filter(({ state }) => state.startedAt !== null);
  expect(ran.length).toBeGreaterThanOrEqual(sessions.size - 4);
});
