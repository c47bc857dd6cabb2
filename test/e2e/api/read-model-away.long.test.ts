import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import {
  connectApi,
  errorOf,
  type ApiClient,
  type Reply,
} from '#test/support/clients/api-client.ts';

/** Redis fails or loses all data: answers are correct, or UNAVAILABLE. */

const WHOLE_WITHIN_MS = 15_000;
/** The service gives Redis up after 10 failed starts (src/start/embedded/supervise.ts). */
const STARTS_KILLED_MAX = 8;
let service: RunningService;
let api: ApiClient;
/** The existing sessions, newest first: all of them, and those that have not ended. */
const all: string[] = [];
const active: string[] = [];

beforeAll(async () => {
  service = await startService({
    TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000 } }),
    POOL_MAX: '30',
    POOL_MIN_IDLE: '2',
  });
  api = await connectApi(service.apiUrl);
  for (let made = 0; made < 8; made += 1) {
    const { id } = (await api.create()).body;
    all.unshift(id);
    active.unshift(id);
  }
});
afterAll(() => service?.[Symbol.asyncDispose]());

/**
 * Lists and status are correct or UNAVAILABLE, single reads find existing sessions, commands work.
 */
async function look(): Promise<{ isWhole: boolean }> {
  const [list, filtered, status] = await Promise.all([
    api.get('/api/sessions?limit=100'),
    api.get('/api/sessions?status=active&limit=100'),
    api.get('/api/status'),
  ]);
  if (!isAway(list)) expect(idsOf(list)).toEqual(all);
  if (!isAway(filtered)) expect(idsOf(filtered)).toEqual(active);
  if (!isAway(status)) {
    expect(status.body.current_load.active_sessions).toBe(active.length);
    // A browser's own events are stored beside its session's: the last one may be a moment later.
    const { busy } = status.body.autoscaler.pool_status;
    expect(Math.abs(busy - active.length)).toBeLessThanOrEqual(1);
  }
  for (const id of [active[0], active.at(-1)]) {
    const { status: code, body } = await api.get(`/api/sessions/${id}`);
    expect([code, body.id, body.status]).toEqual([200, id, 'active']);
    expect((await api.get(`/api/sessions/${id}/access`)).status).toBe(200);
  }
  expect(errorOf(await api.get('/api/sessions/ses_none'))).toBe('404 SESSION_NOT_FOUND');
  return { isWhole: [list, filtered, status].every((reply) => reply.status === 200) };
}

function isAway(reply: Reply): boolean {
  if (reply.status === 200) return false;
  expect(errorOf(reply)).toBe('503 UNAVAILABLE');
  expect(reply.body.context).toEqual({ part: 'read-model' });
  return true;
}

function idsOf({ body }: Reply): string[] {
  expect(body.total).toBe(body.sessions.length);
  return body.sessions.map(({ id }: { id: string }) => id);
}

/** Repeats the reads until all are answered. @returns the number of rounds */
async function lookUntilWhole(): Promise<number> {
  let looks = 0;
  await eventually(
    async () => {
      looks += 1;
      return (await look()).isWhole && (await api.get('/api/health')).body.status === 'healthy';
    },
    'all is back',
    WHOLE_WITHIN_MS,
  );
  return looks;
}

/** Kills Redis, and kills it again each time it is back, until `signal` or STARTS_KILLED_MAX. */
async function keepRedisDown(signal: AbortSignal): Promise<void> {
  const killed = new Set<number>();
  while (!signal.aborted && killed.size < STARTS_KILLED_MAX) {
    const record = await readFile(join(service.dataDir, 'redis.pid'), 'utf8').catch(() => '');
    const pid = record === '' ? 0 : (JSON.parse(record) as { pid: number }).pid;
    if (pid !== 0 && !killed.has(pid)) {
      process.kill(pid, 'SIGKILL');
      killed.add(pid);
    }
    await sleep(20);
  }
}

describe('Redis is killed', () => {
  it('commands and single reads work, lists are correct or UNAVAILABLE, then work again', async () => {
    const isNoticed = new AbortController();
    const down = keepRedisDown(isNoticed.signal);
    await eventually(async () => {
      const asked = [api.get('/api/sessions'), api.get('/api/health')] as const;
      const [list, { body }] = await Promise.all(asked);
      // The rate limiter and the read model notice it one after the other.
      const areDegraded = isDeepStrictEqual(body.dependencies, {
        database: 'degraded',
        autoscaler: 'degraded',
        rate_limit: 'degraded',
        object_store: 'healthy',
      });
      return isAway(list) && body.status !== 'healthy' && areDegraded;
    }, 'lists are unavailable and all that needs Redis is degraded');
    isNoticed.abort();
    await down;
    expect(errorOf(await api.get('/api/ready'))).toMatch(/^(503 UNAVAILABLE|200)$/);
    // Commands during the outage and during the recovery.
    for (let round = 0; round < 6; round += 1) {
      const { status, body } = await api.create({ duration: '1h' });
      expect([status, body.status]).toEqual([201, 'active']);
      all.unshift(body.id);
      expect((await api.get(`/api/sessions/${body.id}`)).body.id).toBe(body.id);
      expect((await api.extend(body.id, '1h')).status).toBe(200);
      expect((await api.stop(body.id)).status).toBe(200);
      expect((await api.get(`/api/sessions/${body.id}`)).body.ended_reason).toBe('user');
    }
    await eventually(
      async () => (await api.get('/api/sessions?status=stopped')).body.total === 6,
      'the browsers of those that were stopped are gone',
      WHOLE_WITHIN_MS,
    );
    await lookUntilWhole();
  });
});

describe('FLUSHALL', () => {
  it('is repaired from the event store, and no answer is wrong meanwhile', async () => {
    const redis = new Redis(service.runtime.redis_url);
    await redis.flushall();
    redis.disconnect();
    // No create is refused because the read model has no server for a moment.
    const { status, body } = await api.create();
    expect([status, body.status]).toEqual([201, 'active']);
    all.unshift(body.id);
    active.unshift(body.id);
    expect(await lookUntilWhole()).toBeGreaterThan(0);
  });

  it('repeatedly, during the repair', async () => {
    const redis = new Redis(service.runtime.redis_url);
    for (let round = 0; round < 10; round += 1) {
      await Promise.all([look(), look(), redis.flushall(), look()]);
    }
    redis.disconnect();
    await lookUntilWhole();
  });
});
