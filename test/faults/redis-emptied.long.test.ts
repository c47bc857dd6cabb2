import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';

const PLENTY = JSON.stringify({
  max: { requests_per_minute: 1_000_000, concurrent_sessions: 1e5 },
});
const SESSIONS = 60;
/** Readers of each kind, many enough to see a state that is wrong for a few milliseconds. */
const READERS = 4;
const TIMES = 3;
/** With the sessions' own events, more than one batch of a projection (500 events). */
const EXTENSIONS = 240;

test('an emptied read model is rebuilt within 15 s, and no read meanwhile is wrong', async () => {
  await using service = await startService({ POOL_MIN_IDLE: '4', POOL_MAX: '500', TIERS: PLENTY });
  const ids = await createMany(service);
  const [extended = '', stopped = ''] = ids;
  await extendMany(service, ids);
  ids.push(...(await createMany(service)));
  await service.request('DELETE', `/api/sessions/${stopped}`);
  await isStopped(service, stopped);
  await extendMany(service, ids);

  const stop = new AbortController();
  const reading = Promise.all(
    Array.from({ length: READERS }, () => [
      readOne(service, extended, stop.signal),
      readStopped(service, stopped, stop.signal),
      readList(service, extended, stop.signal),
    ]).flat(),
  );
  reading.catch(() => undefined); // rethrown by the await below
  for (let time = 1; time <= TIMES; time += 1) {
    await empty(service);
    await isWhole(service, extended);
  }
  stop.abort();
  // A reader that was hardly answered would have shown nothing.
  for (const count of await reading) expect(count).toBeGreaterThan(TIMES);

  const { sessions } = await auditLog(service);
  expect(sessions.size).toBe(SESSIONS);
  const pages = [0, 50].map((offset) =>
    service.request('GET', `/api/sessions?limit=50&offset=${offset}`),
  );
  const rows = (await Promise.all(pages)).flatMap(({ body }) => body.sessions);
  expect(rows.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  for (const row of rows) {
    const state = sessions.get(row.id)?.state;
    expect([row.id, row.status, row.expires_at]).toEqual([row.id, state?.status, state?.expiresAt]);
  }
  const { body } = await service.request('GET', '/api/status');
  expect(body.current_load.active_sessions).toBe(SESSIONS - 1);
  expect(body.autoscaler.pool_status).toMatchObject({ busy: SESSIONS - 1 });
});

async function createMany(service: RunningService): Promise<string[]> {
  const answers = await Promise.all(
    Array.from({ length: SESSIONS / 2 }, () => service.request('POST', '/api/sessions', {})),
  );
  expect(answers.map(({ status, body }) => [status, body.status])).toEqual(
    answers.map(() => [201, 'active']),
  );
  return answers.map(({ body }) => body.id as string);
}

/** Makes a history of several batches: states after the first ones differ from the final states. */
async function extendMany(service: RunningService, ids: readonly string[]): Promise<void> {
  for (let extension = 1; extension <= EXTENSIONS; extension += 4)
    await Promise.all(
      Array.from({ length: 4 }, async (_, index) => {
        const id = ids[(extension + index) % ids.length];
        if (id === ids[1]) return;
        const path = `/api/sessions/${id}/extend`;
        const { status } = await service.request('POST', path, { duration: '1m' });
        expect(status).toBe(200);
      }),
    );
}

async function isStopped(service: RunningService, id: string): Promise<void> {
  await eventually(
    async () => (await service.request('GET', `/api/sessions/${id}`)).body.status === 'stopped',
    'it is stopped',
  );
}

async function empty({ runtime }: RunningService): Promise<void> {
  const redis = new Redis(runtime.redis_url, { retryStrategy: () => null });
  try {
    await redis.flushall();
  } finally {
    redis.disconnect();
  }
}

/** Waits until commands are accepted, their effect is listed and health is `healthy`. */
async function isWhole(service: RunningService, id: string): Promise<void> {
  const path = `/api/sessions/${id}/extend`;
  const { status, body } = await service.request('POST', path, { duration: '1m' });
  expect([status, body.id]).toEqual([200, id]);
  await eventually(
    async () => {
      const list = await service.request('GET', '/api/sessions?limit=100');
      if (list.status !== 200) return false;
      expect(list.body.total).toBe(SESSIONS);
      const health = await service.request('GET', '/api/health');
      return health.body.status === 'healthy';
    },
    'the list is there again',
    15_000,
  );
}

/** Reads a session that is being extended: it always exists and its expiry never moves back. */
async function readOne(service: RunningService, id: string, signal: AbortSignal): Promise<number> {
  let newest = '';
  let answers = 0;
  for (; !signal.aborted; answers += 1) {
    const { status, body } = await service.request('GET', `/api/sessions/${id}`);
    expect([status, body.status, body.expires_at >= newest]).toEqual([200, 'active', true]);
    newest = body.expires_at;
  }
  return answers;
}

async function readStopped(
  service: RunningService,
  id: string,
  signal: AbortSignal,
): Promise<number> {
  let answers = 0;
  for (; !signal.aborted; answers += 1) {
    const { status, body } = await service.request('GET', `/api/sessions/${id}`);
    expect([status, body.status]).toEqual([200, 'stopped']);
  }
  return answers;
}

/** Each list is complete and never older than the one before, or refused with UNAVAILABLE. */
async function readList(service: RunningService, id: string, signal: AbortSignal): Promise<number> {
  let newest = '';
  let answers = 0;
  for (; !signal.aborted; answers += 1) {
    const { status, body } = await service.request('GET', '/api/sessions?limit=100');
    if (status === 503 && body.error === 'UNAVAILABLE') continue;
    expect([status, body.total, body.sessions.length]).toEqual([200, SESSIONS, SESSIONS]);
    const row = body.sessions.find((one: { id: string }) => one.id === id);
    expect(row.expires_at >= newest).toBe(true);
    newest = row.expires_at;
  }
  return answers;
}
