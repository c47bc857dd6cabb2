import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import {
  connectApi,
  errorOf,
  type ApiClient,
  type Reply,
} from '#test/support/clients/api-client.ts';
import { startTwoApis } from '#test/support/service/two-processes.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';

/** State that two API processes of one service share, and times that the API promises. */

const REQUESTS = 60;
let apis: Awaited<ReturnType<typeof startTwoApis>>;
let log: ServiceLog;
let clients: [ApiClient, ApiClient];
let heartbeatAfterMs: Promise<number>;

beforeAll(async () => {
  const tiers = {
    free: { requests_per_minute: REQUESTS },
    pro: { requests_per_minute: 1_000_000 },
  };
  apis = await startTwoApis({ TIERS: JSON.stringify(tiers) });
  clients = [await connectApi(apis.first.apiUrl), await connectApi(apis.second.apiUrl)];
  log = await openLog(apis.first);
  heartbeatAfterMs = untilHeartbeat(apis.second.apiUrl);
  heartbeatAfterMs.catch(() => undefined);
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
/** The end of the minute that a request was counted in, in seconds since the epoch. */
const reset = ({ headers }: Reply) => Number(headers['x-ratelimit-reset']);

describe('the rate limit', () => {
  it('is exact over both: each request of a minute counts once, then all are refused', async () => {
    const [first, second] = await organization('limited', 'free');
    const left = new Map<number, number>();
    const look = await second.get('/api/status');
    left.set(reset(look), remaining(look));
    let refused: Reply[] = [];
    // A minute may end within the first round, which then fills no minute.
    while (refused.length === 0) {
      const askedAt = Date.now();
      const replies = await Promise.all(
        Array.from({ length: 2 * REQUESTS }, (_, at) =>
          (at % 2 === 0 ? first : second).get(at % 3 === 0 ? '/api/sessions' : '/api/status'),
        ),
      );
      const answeredAt = Date.now();
      for (const [minute, ofMinute] of Map.groupBy(replies, reset)) {
        const before = left.get(minute) ?? REQUESTS;
        const counts = ofMinute.filter(({ status }) => status === 200).map(remaining);
        // None is missing, and none is there twice.
        const after = before - counts.length;
        const each = Array.from({ length: counts.length }, (_, at) => after + at);
        expect(counts.toSorted((one, other) => one - other)).toEqual(each);
        left.set(minute, after);
        const late = ofMinute.filter(({ status }) => status !== 200);
        if (late.length > 0) expect(after).toBe(0);
        for (const reply of late) expectRefused(reply, askedAt, answeredAt);
        refused = refused.concat(late);
      }
    }
    const minutes = [...left.keys()];
    expect(minutes.filter((seconds) => seconds % 60 !== 0)).toEqual([]);
    // Refused, it has no effect, and does not delay others.
    expect(await log.ledger('limited')).toMatchObject({ slotsInUse: 0 });
    expect((await clients[0].get('/api/status')).status).toBe(200);
  });

  function expectRefused(reply: Reply, askedAt: number, answeredAt: number): void {
    expect(errorOf(reply)).toBe('429 RATE_LIMIT_EXCEEDED');
    expect(reply.body.context).toEqual({ limit: REQUESTS, cost: 1 });
    expect(remaining(reply)).toBe(0);
    const retryAfter = Number(reply.headers['retry-after']);
    expect(retryAfter).toBeLessThanOrEqual(reset(reply) - Math.floor(askedAt / 1000));
    expect(retryAfter).toBeGreaterThanOrEqual(reset(reply) - Math.floor(answeredAt / 1000));
  }
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

test('a stream of events has a comment every 15 s', async () => {
  expect(await heartbeatAfterMs).toBeLessThan(16_000);
});

/** How long after its request the first comment of a stream came. */
async function untilHeartbeat(apiUrl: string): Promise<number> {
  const begunAt = performance.now();
  const headers = { authorization: `Bearer ${DEV_KEY}` };
  const { body } = await fetch(`${apiUrl}/api/events`, { headers });
  let text = '';
  for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (text.includes('\n: heartbeat\n')) return performance.now() - begunAt;
  }
  throw new Error(`the stream ended: ${text}`);
}
