import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { allProjections } from '#projections/all-projections.ts';
import { projectionId } from '#projections/projection.ts';
import { rebuild } from '#projections/maintenance/rebuild.ts';
import { verify } from '#projections/maintenance/verify.ts';
import { createRedisViews } from '#projections/store/redis/redis-views.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createJetStreamDeadLetters } from '#src/kernel/messaging/jetstream/jetstream-dead-letters.ts';
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
/** Answers that each reader has checked at the end. */
const READS_MIN = 50;

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
  const reads = Array.from({ length: 2 * READERS }, () => 0);
  const working = Promise.all([
    createMany(service, created, stop.signal),
    ...reads.map((_, reader) => {
      const read = reader < READERS ? readLists : readSessions;
      return read(service, created, stop.signal, (answers) => (reads[reader] = answers));
    }),
  ]);
  working.catch(() => stop.abort()); // rethrown by the await below
  try {
    await untilMore(created, 100, stop.signal);
    // A busy machine takes more rounds until every reader has read often enough.
    const isEnough = (rounds: number) => rounds >= ROUNDS && Math.min(...reads) > READS_MIN;
    for (let round = 0; !isEnough(round) && !stop.signal.aborted; round += 1) {
      for (const projection of allProjections) {
        const all = { projection, eventStore, views, deadLetters, signal: stop.signal };
        const rebuilt = await rebuild(all).catch((error: unknown) => {
          // A reader has failed: what it saw is thrown below.
          if (!stop.signal.aborted) throw error;
        });
        if (!stop.signal.aborted) expect(rebuilt?.deadLettered, projectionId(projection)).toBe(0);
      }
      await untilMore(created, 100, stop.signal);
    }
  } finally {
    stop.abort();
  }
  await working;
  for (const count of reads) expect(count).toBeGreaterThan(READS_MIN);
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
    // A machine that is too slow for the rate gets fewer, rather than a queue of them.
    if (open.size > CREATES_A_SECOND) await Promise.race(open);
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
  onAnswer: (answers: number) => void,
): Promise<void> {
  let highest = 0;
  for (let answers = 0; !signal.aborted; onAnswer((answers += 1))) {
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
}

async function readSessions(
  service: RunningService,
  created: readonly string[],
  signal: AbortSignal,
  onAnswer: (answers: number) => void,
): Promise<void> {
  const seen = new Map<string, number>();
  for (let answers = 0; !signal.aborted;) {
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
    onAnswer((answers += 1));
  }
}

async function untilMore(
  created: readonly string[],
  more: number,
  signal: AbortSignal,
): Promise<void> {
  const target = created.length + more;
  while (created.length < target && !signal.aborted) await delay(50);
}
