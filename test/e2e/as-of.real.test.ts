import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import {
  asKey,
  newKey,
  newOrganization,
  untilAnswered,
} from '#test/support/clients/command-line.ts';
import {
  eventually,
  startService,
  type Answer,
  type RunningService,
} from '#test/support/service/service.ts';

/** The answers of a moment at which nothing changed. */
type Moment = { at: string; bodies: unknown[] };

let service: RunningService;
beforeAll(async () => {
  service = await startService({
    POOL_MAX: '1',
    QUEUE_AFTER: '200ms',
    TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000 } }),
  });
});
afterAll(() => service[Symbol.asyncDispose]());

async function get(path: string): Promise<Answer> {
  return service.request('GET', path);
}

/** Bodies of the service's answers, without the time of the answer. */
async function bodies(paths: readonly string[], asOf?: string): Promise<unknown[]> {
  const answers = await Promise.all(
    paths.map((path) => {
      const sign = path.includes('?') ? '&' : '?';
      return get(asOf === undefined ? path : `${path}${sign}as_of=${asOf}`);
    }),
  );
  return answers.map(({ body }) => {
    if (asOf !== undefined && body.timestamp !== undefined) expect(body.timestamp).toBe(asOf);
    return body.timestamp === undefined ? body : { ...body, timestamp: 'then' };
  });
}

/** A moment with the same answers before and after it. */
async function moment(paths: readonly string[]): Promise<Moment> {
  return eventually(async () => {
    const before = await bodies(paths);
    const at = new Date().toISOString();
    await eventually(() => new Date().toISOString() > at, 'the millisecond is over');
    const after = await bodies(paths);
    if (JSON.stringify(before) !== JSON.stringify(after)) return null;
    // An event may be stored, and not have reached the process yet.
    const stored = await bodies(paths, new Date().toISOString());
    return JSON.stringify(stored) === JSON.stringify(after) ? { at, bodies: after } : null;
  }, 'nothing changes for a moment');
}

describe('the history of two sessions', () => {
  it('is answered with as_of exactly like at that moment', async () => {
    const beforeAllOfIt = await moment(['/api/sessions', '/api/status']);
    const first = await service.request('POST', '/api/sessions', { labels: { team: 'a' } });
    const asked = { duration: '30m', description: 'waits', labels: { team: 'b' } };
    const respondAsync = { prefer: 'respond-async' };
    const second = await service.request('POST', '/api/sessions', asked, respondAsync);
    const path = `/api/sessions/${second.body.id}`;
    const paths = [
      path,
      `/api/sessions/${first.body.id}`,
      '/api/sessions',
      '/api/sessions?status=active',
      '/api/sessions?status=queued&limit=1',
      '/api/sessions?limit=1&offset=1',
      '/api/sessions?label=team=b',
      '/api/status',
    ];
    const is = (status: string) =>
      eventually(async () => (await get(path)).body.status === status, status);
    const steps: (() => Promise<unknown>)[] = [
      () => is('queued'),
      () => service.request('POST', `${path}/extend`, { duration: '10m' }),
      () => service.request('DELETE', `/api/sessions/${first.body.id}`),
      () => is('active'),
      () => get(`${path}/access`),
      () => service.request('POST', `${path}/extend`, { duration: '1h' }),
      () => service.request('DELETE', path),
      () => is('stopped'),
      () => service.request('POST', '/api/sessions', { labels: { team: 'b' } }),
    ];
    const moments = [await moment(paths), await moment(paths)];
    for (const step of steps) {
      await step();
      moments.push(await moment(paths), await moment(paths));
    }
    expect(moments).toHaveLength(20);
    const statuses = moments.map(({ bodies: [body] }) => (body as Answer['body']).status);
    expect([...new Set(statuses)].at(-1)).toBe('stopped');

    for (const { at, bodies: then } of moments) expect(await bodies(paths, at), at).toEqual(then);
    const [list, status] = await bodies(['/api/sessions', '/api/status'], beforeAllOfIt.at);
    expect([list, status]).toEqual(beforeAllOfIt.bodies);
    expect((await get(`${path}?as_of=${beforeAllOfIt.at}`)).status).toBe(404);
  });
});

describe('as_of', () => {
  test.each([
    'yesterday',
    '',
    '1763700000',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-01-01T00:00:00%2B24:00',
    '2026-02-30T00:00:00Z',
    '2026-01-01T25:00:00Z',
    '9999-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z&as_of=2026-01-01T00:00:00Z',
  ])('%s is refused', async (asOf) => {
    for (const path of ['/api/sessions', '/api/sessions/ses_none', '/api/status']) {
      const { status, body } = await get(`${path}?as_of=${asOf}`);
      expect([status, body.error, body.code]).toEqual([400, 'INVALID_REQUEST', 400]);
      expect(body.context).toHaveProperty('as_of');
    }
  });

  it('before the first event finds nothing', async () => {
    const asOf = '?as_of=2020-01-01T00:00:00Z';
    expect((await get(`/api/sessions/ses_none${asOf}`)).body.error).toBe('SESSION_NOT_FOUND');
    expect((await get(`/api/sessions${asOf}`)).body).toMatchObject({ sessions: [], total: 0 });
    const { body } = await get(`/api/status${asOf}`);
    expect(body).toMatchObject({
      autoscaler: { status: 'unhealthy', pool_status: { total: 0 } },
      current_load: { active_sessions: 0 },
      timestamp: '2020-01-01T00:00:00.000Z',
    });
  });

  it.each([
    '2020-01-01T02:00:00%2B02:00',
    '2019-12-31T18:30:00.000999-05:30',
    '2020-01-01T01:00:00.000000%2B0100',
  ])('%s is the same moment in UTC', async (asOf) => {
    const { status, body } = await get(`/api/status?as_of=${asOf}`);
    expect([status, body.timestamp]).toEqual([200, '2020-01-01T00:00:00.000Z']);
  });

  it('shows no session of another organization', async () => {
    const noWait = { prefer: 'respond-async' };
    const { body } = await service.request('POST', '/api/sessions', {}, noWait);
    const asOf = new Date().toISOString();
    const path = `/api/sessions/${body.id}?as_of=${asOf}`;
    expect((await get(path)).status).toBe(200);
    const organization = await newOrganization(service, '--tier', 'free');
    const { api_key } = await newKey(service, organization, 'owner');
    await untilAnswered(service, api_key, 200);
    expect(await asKey(service, api_key, 'GET', path)).toMatchObject({
      status: 404,
      body: { error: 'SESSION_NOT_FOUND', context: { session_id: body.id } },
    });
    const list = await asKey(service, api_key, 'GET', `/api/sessions?as_of=${asOf}`);
    expect(list.body).toMatchObject({ sessions: [], total: 0 });
  });
});
