import { describe, expect, it } from 'vitest';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** Shares, and the origins of pages that may embed them, over HTTP. */

const { beforeAll, afterAll } = useVirtualTime();

const MINUTE = 60_000;
let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app?.[Symbol.asyncDispose]());

const as = (caller: string) => ({ authorization: `Bearer ${caller}` });
const [member, viewer, admin] = ['member/bea', 'viewer/vic', 'admin/ada'].map(as);

async function create(body: object = { duration: '2h' }): Promise<string> {
  return (await app.request('POST', '/api/sessions', body)).body.id;
}
async function share(id: string, body: object = { mode: 'view', expires_in: '30m' }, who = member) {
  return app.request('POST', `/api/sessions/${id}/shares`, body, who);
}
async function list(id: string) {
  const { body } = await app.request('GET', `/api/sessions/${id}/shares`, undefined, viewer);
  return body.shares;
}

describe('a share', () => {
  it('is made with an address of its own, listed without it, and revoked', async () => {
    const id = await create();
    const made = await share(id);
    expect(made.status).toBe(201);
    const { id: shareId, expires_at: expiresAt } = made.body;
    expect(made.body).toEqual({
      id: shareId,
      url: `http://host:1/vnc/${shareId}/`,
      mode: 'view',
      expires_at: expiresAt,
    });
    expect(Math.abs(Date.parse(expiresAt) - app.now() - 30 * MINUTE)).toBeLessThan(10_000);
    expect(await list(id)).toEqual([
      {
        id: shareId,
        mode: 'view',
        expires_at: expiresAt,
        created_at: expect.any(String),
        created_by: 'bea',
        used: false,
        last_used_at: null,
      },
    ]);
    const path = `/api/sessions/${id}/shares/${shareId}`;
    expect((await app.request('DELETE', path, undefined, member)).status).toBe(200);
    expect(await list(id)).toEqual([]);
    expect(await app.request('DELETE', path, undefined, member)).toMatchObject({
      status: 404,
      body: { error: 'SHARE_NOT_FOUND', context: { session_id: id, share_id: shareId } },
    });
  });

  it('is not listed once it has expired, or its session has ended', async () => {
    const id = await create();
    await share(id, { mode: 'control', expires_in: '5m' });
    await share(id, { mode: 'view', expires_in: '1h' });
    app.pass(6 * MINUTE);
    expect(await list(id)).toMatchObject([{ mode: 'view' }]);
    await app.request('DELETE', `/api/sessions/${id}`);
    expect(await list(id)).toEqual([]);
    expect((await share(id)).body.error).toBe('SESSION_ENDED');
  });

  it('is one of 16 at most', async () => {
    const id = await create();
    for (let n = 0; n < 16; n += 1) expect((await share(id)).status).toBe(201);
    expect(await share(id)).toMatchObject({
      status: 429,
      body: { error: 'SHARE_LIMIT_EXCEEDED', context: { session_id: id, limit: 16 } },
    });
  });

  it('is neither made nor revoked by a viewer, and needs a mode, a duration and a screen', async () => {
    const id = await create();
    expect((await share(id, undefined, viewer)).status).toBe(403);
    const path = `/api/sessions/${id}/shares/shr_1`;
    expect((await app.request('DELETE', path, undefined, viewer)).status).toBe(403);
    for (const [body, error] of [
      [{ expires_in: '30m' }, 'INVALID_REQUEST'],
      [{ mode: 'all', expires_in: '30m' }, 'INVALID_REQUEST'],
      [{ mode: 'view' }, 'INVALID_DURATION'],
      [{ mode: 'view', expires_in: '30s' }, 'INVALID_DURATION'],
    ] as const)
      expect((await share(id, body)).body.error).toBe(error);
    expect((await share(await create({ headless: true }))).status).toBe(400);
    expect((await share('ses_none')).body.error).toBe('SESSION_NOT_FOUND');
  });
});

describe('the origins of pages that may embed shares', () => {
  const put = (origins: unknown, who = admin) =>
    app.request('PUT', '/api/organization/origins', { allowed_origins: origins }, who);
  const read = async () =>
    (await app.request('GET', '/api/organization', undefined, viewer)).body.allowed_origins;

  it('are replaced by an admin, and seen by all', async () => {
    expect(await read()).toEqual([]);
    const origins = ['https://app.example.com', 'http://localhost:3000'];
    expect(await put([...origins, origins[0]])).toEqual({
      status: 200,
      body: { allowed_origins: origins },
    });
    expect(await read()).toEqual(origins);
    expect((await put([], member)).status).toBe(403);
    expect((await put([])).body).toEqual({ allowed_origins: [] });
    expect(await read()).toEqual([]);
  });

  it.each([
    'https://app.example.com/',
    'https://app.example.com/page',
    'https://app.example.com:443',
    'https://*.example.com',
    '*',
    'null',
    "'self'",
    'https://a.example https://b.example',
    "https://a.example; script-src 'unsafe-inline'",
    'javascript:alert(1)',
    'app.example.com',
    'https://',
    '',
  ])('refuses what is no origin: %s', async (origin) => {
    expect(await put([origin])).toMatchObject({ status: 400, body: { error: 'INVALID_REQUEST' } });
    expect(await read()).toEqual([]);
  });

  it('are at most 16', async () => {
    const many = Array.from({ length: 17 }, (_, n) => `https://app${n}.example.com`);
    expect((await put(many)).status).toBe(400);
    expect((await put(many.slice(1))).status).toBe(200);
  });
});
