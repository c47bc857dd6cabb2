import { afterAll, beforeAll, expect, it } from 'vitest';
import { estimate } from '#src/roles/api/sessions/queue-place.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';

/** One browser, and sessions that wait for it in the order of their creates. */

let service: RunningService;
beforeAll(async () => {
  service = await startService({
    ...{ POOL_MAX: '1', POOL_MIN_IDLE: '1', QUEUE_AFTER: '100ms', QUEUE_MAX: '9' },
  });
});
afterAll(() => service?.[Symbol.asyncDispose]());

async function read(id: string) {
  return (await service.request('GET', `/api/sessions/${id}`)).body;
}
async function create(name: string): Promise<string> {
  const body = { session_name: name, duration: '30m' };
  const prefer = { prefer: 'respond-async' };
  const created = await service.request('POST', '/api/sessions', body, prefer);
  expect(created.status).toBe(201);
  return created.body.id;
}
async function becomes(id: string, expected: object) {
  return eventually(
    async () => {
      const session = await read(id);
      return (
        Object.entries(expected).every(([field, value]) => session[field] === value) && session
      );
    },
    `${id} is ${JSON.stringify(expected)}`,
  );
}
async function stop(id: string) {
  expect((await service.request('DELETE', `/api/sessions/${id}`)).status).toBe(200);
}

it('queued sessions are served in order, and show their place and estimated wait', async () => {
  const first = await create('first');
  expect(await becomes(first, { status: 'active' })).not.toHaveProperty('queue_position');
  const [second, third, fourth] = [await create('2'), await create('3'), await create('4')];
  for (const [at, id] of [second, third, fourth].entries())
    expect(await becomes(id, { status: 'queued' })).toMatchObject({
      queue_position: at + 1,
      estimated_wait_seconds: expect.any(Number),
    });

  await stop(first);
  expect(await becomes(second, { status: 'active' })).not.toHaveProperty('queue_position');
  await becomes(third, { queue_position: 1 });
  await becomes(fourth, { queue_position: 2 });
  // A session that leaves the queue moves the later ones up.
  await stop(third);
  const gone = await read(third);
  expect(gone).toMatchObject({ status: 'stopped', ended_reason: 'user', credits_used: 0 });
  await becomes(fourth, { queue_position: 1 });
  await stop(second);
  await becomes(fourth, { status: 'active' });
});

it('the wait is estimated by the pace of recent assignments', () => {
  const MINUTE = 60_000;
  const now = 100 * MINUTE;
  expect(estimate(3, [], now)).toBeNull();
  expect(estimate(3, [now - 6 * MINUTE], now)).toBeNull();
  expect(estimate(1, [now - 10_000], now)).toBe(10);
  expect(estimate(3, [now - 20_000, now - 10_000], now)).toBe(30);
});
