import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { allProjections } from '#projections/all-projections.ts';
import { projectionId } from '#projections/projection.ts';
import { rebuild } from '#projections/maintenance/rebuild.ts';
import { verify } from '#projections/maintenance/verify.ts';
import { createRedisViews } from '#projections/store/redis/redis-views.ts';
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/event-store/jetstream/jetstream-event-store.ts';
import { createJetStreamDeadLetters } from '#src/messaging/jetstream/jetstream-dead-letters.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';
import { soakOr } from '#test/support/soak.ts';

const PLENTY = JSON.stringify({
  max: { requests_per_minute: 1e9, concurrent_sessions: 1e5, credits: 1e9 },
});
const CREATES_A_SECOND = 50;
/**
 * How often every read model is rebuilt while sessions come and go. One round takes every switch
 * from the old copy to the new once; a race that shows once in five switches needs the soak.
 */
const ROUNDS = soakOr(5, 1);
const OPEN_MAX = 100;
const READERS = 3;

/** The order of a session's statuses. */
const ranks = ['creating', 'queued', 'active', 'stopping', 'stopped'];

test('readers see no error, no missing session and no older state while every read model is rebuilt under 50 creates a second', async () => {
  await using service = await startService({ POOL_MAX: '500', TIERS: PLENTY, LOG_LEVEL: 'warn' });
  await using connection = await connectJetStream({ url: service.runtime.nats_url });
  await using views = await createRedisViews({ url: service.runtime.redis_url });
  const eventStore = createJetStreamEventStore(connection);
  const deadLetters = createJetStreamDeadLetters(connection);
  const { signal } = new AbortController();
  const stop = new AbortController();
  const created: string[] = [];
  const working = Promise.all([
    createMany(service, created, stop.signal),
    ...Array.from({ length: READERS }, () => readLists(service, created, stop.signal)),
    ...Array.from({ length: READERS }, () => readSessions(service, created, stop.signal)),
  ]);
  working.catch(() => stop.abort()); // rethrown by the await below
  try {
    await untilMore(created, 100, stop.signal);
    for (let round = 0; round < ROUNDS && !stop.signal.aborted; round += 1) {
      for (const projection of allProjections) {
        const rebuilt = await rebuild({ projection, eventStore, views, deadLetters, signal });
        expect(rebuilt?.deadLettered, projectionId(projection)).toBe(0);
      }
      await untilMore(created, 100, stop.signal);
    }
  } finally {
    stop.abort();
  }
  const reads = (await working).slice(1);
  // The short form has one round: fewer reads, but some of every reader.
  for (const count of reads) expect(count).toBeGreaterThan(soakOr(50, 5));
  const verified = await verify({
    projections: allProjections,
    eventStore,
    views,
    signal,
    sample: null,
  });
  for (const { differences } of verified) expect(differences).toEqual([]);
});

/** Creates sessions at a steady rate; stops each once OPEN_MAX newer ones exist. */
async function createMany(
  service: RunningService,
  created: string[],
  signal: AbortSignal,
): Promise<number> {
  const open = new Set<Promise<void>>();
  let next = performance.now();
  async function createOne(): Promise<void> {
    const { status, body } = await service.request('POST', '/api/sessions', { duration: '1h' });
    expect([status, body.error]).toEqual([201, undefined]);
    created.push(body.id as string);
    const old = created.at(-OPEN_MAX);
    if (old !== undefined) await service.request('DELETE', `/api/sessions/${old}`);
  }
  while (!signal.aborted) {
    const one: Promise<void> = createOne().finally(() => open.delete(one));
    open.add(one);
    if (open.size > 4 * CREATES_A_SECOND) await Promise.race(open);
    next = Math.max(next + 1000 / CREATES_A_SECOND, performance.now() - 1000);
    await delay(Math.max(0, next - performance.now()));
  }
  await Promise.all(open);
  return created.length;
}

/** The list counts every session acknowledged before, and its total never falls. */
async function readLists(
  service: RunningService,
  created: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  let answers = 0;
  for (let highest = 0; !signal.aborted; answers += 1) {
    const known = created.length;
    const newest = created.at(-1);
    const { status, body } = await service.request('GET', '/api/sessions?limit=100');
    expect([status, body.error]).toEqual([200, undefined]);
    expect(body.total).toBeGreaterThanOrEqual(Math.max(known, highest));
    // Unless a hundred newer sessions were created during the request.
    const ids = (body.sessions as { id: string }[]).map(({ id }) => id);
    if (newest !== undefined && body.total - known < 50) expect(ids).toContain(newest);
    highest = body.total as number;
  }
  return answers;
}

async function readSessions(
  service: RunningService,
  created: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const seen = new Map<string, number>();
  let answers = 0;
  for (; !signal.aborted; answers += 1) {
    const id = created[Math.floor(Math.random() * created.length)];
    if (id === undefined) {
      await delay(10);
      continue;
    }
    const { status, body } = await service.request('GET', `/api/sessions/${id}`);
    expect([status, body.error]).toEqual([200, undefined]);
    const rank = ranks.indexOf(body.status as string);
    expect(rank).toBeGreaterThanOrEqual(seen.get(id) ?? 0);
    seen.set(id, rank);
  }
  return answers;
}

async function untilMore(
  created: readonly string[],
  more: number,
  signal: AbortSignal,
): Promise<void> {
  const target = created.length + more;
  while (created.length < target && !signal.aborted) await delay(50);
}
