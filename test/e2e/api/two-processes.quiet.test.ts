import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '#test/support/service/service.ts';
import {
  connectApi,
  errorOf,
  type ApiClient,
  type Reply,
} from '#test/support/clients/api-client.ts';
import { startTwoApis } from '#test/support/service/two-processes.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';

/** State that two API processes of one service share. */

const REQUESTS = 60;
let apis: Awaited<ReturnType<typeof startTwoApis>>;
let log: ServiceLog;
let clients: [ApiClient, ApiClient];

beforeAll(async () => {
  const tiers = {
    free: { requests_per_minute: REQUESTS },
    pro: { requests_per_minute: 1_000_000 },
  };
  apis = await startTwoApis({ TIERS: JSON.stringify(tiers) });
  clients = [await connectApi(apis.first.apiUrl), await connectApi(apis.second.apiUrl)];
  log = await openLog(apis.first);
});
afterAll(async () => {
  await log?.[Symbol.asyncDispose]();
  await apis?.[Symbol.asyncDispose]();
});

/** The organization's owner, at the first process and at the second. */
async function organization(id: string, tier: 'free' | 'pro'): Promise<[ApiClient, ApiClient]> {
  await log.register(id, tier, 1_000);
  const key = await log.issueKey(id, 'owner', clients[0]);
  const second = clients[1].as(key);
  await eventually(async () => (await second.get('/api/status')).status === 200, 'it is taken');
  return [clients[0].as(key), second];
}

const remaining = ({ headers }: Reply) => Number(headers['x-ratelimit-remaining']);

describe('the rate limit', () => {
  it('is exact over both: each request in the window counts once, then all are refused', async () => {
    const [first, second] = await organization('limited', 'free');
    await eventually(() => Date.now() % 60_000 < 50_000, 'a window has begun', 15_000);
    const left = remaining(await second.get('/api/status'));
    expect(left).toBeGreaterThan(REQUESTS / 2);
    const askedAt = Date.now();
    const replies = await Promise.all(
      Array.from({ length: 2 * REQUESTS }, (_, at) =>
        (at % 2 === 0 ? first : second).get(at % 3 === 0 ? '/api/sessions' : '/api/status'),
      ),
    );
    const answeredAt = Date.now();
    const accepted = replies.filter(({ status }) => status === 200);
    expect(accepted.map(remaining).toSorted((a, b) => a - b)).toEqual([...Array(left).keys()]);
    const refused = replies.filter(({ status }) => status !== 200);
    expect(new Set(refused.map(errorOf))).toEqual(new Set(['429 RATE_LIMIT_EXCEEDED']));
    for (const reply of refused) {
      expect(remaining(reply)).toBe(0);
      const reset = Number(reply.headers['x-ratelimit-reset']);
      const retryAfter = Number(reply.headers['retry-after']);
      expect(retryAfter).toBeLessThanOrEqual(reset - Math.floor(askedAt / 1000));
      expect(retryAfter).toBeGreaterThanOrEqual(reset - Math.floor(answeredAt / 1000));
    }
  });
});

describe('a key', () => {
  it('of one process is accepted by the other within 2 s, and refused within 2 s of its end', async () => {
    const [first, second] = await organization('acme', 'pro');
    const times: number[] = [];
    const until = async (client: ApiClient, status: number) => {
      const begin = performance.now();
      const asked = async () => (await client.get('/api/status')).status === status;
      await eventually(asked, `it is answered ${status}`, 2_000);
      times.push(performance.now() - begin);
    };
    for (let round = 0; round < 5; round += 1) {
      const issued = await first.send('POST', '/api/keys', { body: { role: 'member' } });
      expect(issued.status).toBe(201);
      const { key_id, api_key } = issued.body;
      // The process that answered knows the key at once, the other one when the event arrives.
      expect((await first.as(api_key).get('/api/status')).status).toBe(200);
      await until(second.as(api_key), 200);
      expect((await second.send('DELETE', `/api/keys/${key_id}`)).status).toBe(200);
      expect(errorOf(await second.as(api_key).create())).toBe('401 UNAUTHORIZED');
      await until(first.as(api_key), 401);
      expect(errorOf(await first.as(api_key).create())).toBe('401 UNAUTHORIZED');
    }
    expect(Math.max(...times)).toBeLessThan(2_000);
  });
});
