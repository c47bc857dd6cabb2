import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import {
  connectApi,
  errorOf,
  type ApiClient,
  type Reply,
} from '#test/support/clients/api-client.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';

/** The limits of an organization: requests a minute, concurrent sessions, credits. */

const REQUESTS = 25;
let service: RunningService;
let api: ApiClient;
let log: ServiceLog;

beforeAll(async () => {
  service = await startService({
    TIERS: JSON.stringify({
      free: { requests_per_minute: REQUESTS, concurrent_sessions: 2 },
      pro: { concurrent_sessions: 3 },
    }),
    POOL_MAX: '20',
    POOL_MIN_IDLE: '3',
  });
  api = await connectApi(service.apiUrl);
  log = await openLog(service);
});
afterAll(async () => {
  await log?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
});

async function organization(id: string, tier: 'free' | 'pro', credits: number): Promise<ApiClient> {
  await log.register(id, tier, credits);
  return api.as(await log.issueKey(id, 'owner', api));
}

function allowance({ headers }: Reply): { limit: number; remaining: number; reset: number } {
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) =>
    Number(headers[`x-ratelimit-${name}`]),
  ) as [number, number, number];
  return { limit, remaining, reset };
}

/** Waits for a window with enough time left for the requests that follow. */
async function freshWindow(): Promise<void> {
  await eventually(() => Date.now() % 60_000 < 52_000, 'a window has begun', 10_000);
}

describe('the rate limit', () => {
  it('counts every request of an organization down to 0, then refuses until the window ends', async () => {
    const client = await organization('limited', 'free', 600);
    await freshWindow();
    const first = allowance(await client.get('/api/status'));
    expect(first.limit).toBe(REQUESTS);
    expect(first.reset % 60).toBe(0);
    // Successes and refusals count alike, of any key and route.
    const other = api.as(await log.issueKey('limited', 'viewer', api));
    const before = allowance(await client.get('/api/status'));
    const second = allowance(await client.get('/api/sessions/ses_none'));
    const third = allowance(await other.get('/api/sessions?limit=1000'));
    expect([second.remaining, third.remaining]).toEqual([
      before.remaining - 1,
      before.remaining - 2,
    ]);

    for (let left = third.remaining; left > 0; left -= 1)
      expect(allowance(await client.get('/api/sessions')).remaining).toBe(left - 1);
    for (const ask of [
      () => client.get('/api/sessions'),
      () => client.get('/api/sessions/ses_none'),
      () => client.get('/api/status'),
      () => client.create(),
      () => client.stop('ses_none'),
      () => client.get('/nowhere'),
      () => other.get('/api/status'),
    ]) {
      const askedAt = Date.now();
      const refused = await ask();
      const answeredAt = Date.now();
      expect(errorOf(refused)).toBe('429 RATE_LIMIT_EXCEEDED');
      expect(refused.body.context).toEqual({ limit: REQUESTS, cost: 1 });
      const { remaining, reset } = allowance(refused);
      expect(remaining).toBe(0);
      const retryAfter = Number(refused.headers['retry-after']);
      expect(retryAfter).toBeLessThanOrEqual(reset - Math.floor(askedAt / 1000));
      expect(retryAfter).toBeGreaterThanOrEqual(reset - Math.floor(answeredAt / 1000));
    }
    // A refused create has no effect, and does not delay others.
    expect(await log.ledger('limited')).toMatchObject({ slotsInUse: 0 });
    expect((await api.get('/api/status')).status).toBe(200);
  });

  it('counts unauthenticated callers by address, with the free tier’s limit, except on health and readiness', async () => {
    await freshWindow();
    const anonymous = api.as(null);
    const replies = [];
    for (let request = 0; request < REQUESTS + 2; request += 1)
      replies.push(await anonymous.get('/api/sessions'));
    expect(errorOf(replies.at(-1) as Reply)).toBe('429 RATE_LIMIT_EXCEEDED');
    expect(errorOf(await anonymous.get('/nowhere'))).toBe('429 RATE_LIMIT_EXCEEDED');
    for (const path of ['/api/openapi.json', '/docs'])
      expect(errorOf(await anonymous.get(path))).toBe('429 RATE_LIMIT_EXCEEDED');
    for (const path of ['/api/health', '/api/ready']) {
      const reply = await anonymous.get(path);
      expect(reply.status).toBe(200);
      expect(allowance(reply)).toMatchObject({ limit: REQUESTS, remaining: 0 });
    }
    expect((await api.get('/api/status')).status).toBe(200);
  });
});

describe('credits', () => {
  it('are reserved by a create and an extension, which are refused if they do not suffice', async () => {
    const client = await organization('poor', 'pro', 100);
    const tooLong = await client.create({ duration: '2h' });
    expect(errorOf(tooLong)).toBe('402 INSUFFICIENT_CREDITS');
    expect(tooLong.body.context).toMatchObject({ required: 120, available: 100 });
    expect((await client.get('/api/sessions')).body.total).toBe(0);

    const { id, expires_at } = (await client.create({ duration: '1h' })).body;
    const extension = await client.extend(id, '41m');
    expect(errorOf(extension)).toBe('402 INSUFFICIENT_CREDITS');
    expect(extension.body.context).toMatchObject({ required: 41, available: 40 });
    expect((await client.get(`/api/sessions/${id}`)).body.expires_at).toBe(expires_at);

    expect((await client.extend(id, '40m')).status).toBe(200);
    expect(await log.ledger('poor')).toMatchObject({ creditsAvailable: 0, creditsReserved: 100 });
    await client.stop(id);
    await eventually(
      async () => (await log.ledger('poor'))?.creditsAvailable === 99,
      'what was not used is back',
    );
    expect((await client.create({ duration: '1h39m' })).status).toBe(201);
  });

  it('never fall below 0 in ten creates at once', async () => {
    const client = await organization('racing', 'pro', 150);
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => client.create({ duration: '1h' })),
    );
    const outcomes = replies.map(errorOf).toSorted();
    expect(outcomes).toEqual([
      ...Array(2).fill('201'),
      ...Array(8).fill('402 INSUFFICIENT_CREDITS'),
    ]);
    expect(await log.ledger('racing')).toMatchObject({ creditsAvailable: 30, slotsInUse: 2 });
  });
});

describe('concurrent sessions', () => {
  it('are refused beyond the limit, with the limit and the sessions that count', async () => {
    const client = await organization('crowded', 'pro', 10_000);
    const replies = await Promise.all(Array.from({ length: 6 }, () => client.create()));
    const made = replies.filter(({ status }) => status === 201).map(({ body }) => body.id);
    expect(made).toHaveLength(3);

    const refused = await client.create();
    expect(errorOf(refused)).toBe('429 SESSION_LIMIT_EXCEEDED');
    expect(refused.body.context.limit).toBe(3);
    expect(new Set(refused.body.context.session_ids)).toEqual(new Set(made));

    await client.stop(made[0]);
    await eventually(
      async () => (await client.create()).status === 201,
      'a session that ended makes room',
    );
    expect(await log.ledger('crowded')).toMatchObject({ slotsInUse: 3 });
  });
});
