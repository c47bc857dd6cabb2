import { describe, expect, it } from 'vitest';
import { eventually } from '#test/support/service/service.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** Expiry and idle time-outs of sessions, on a clock that the test moves. */

const { beforeAll, afterAll } = useVirtualTime();
const MINUTE = 60_000;
let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app?.[Symbol.asyncDispose]());

async function create(body: object) {
  const { status, body: session } = await app.request('POST', '/api/sessions', body);
  expect([status, session.status]).toEqual([201, 'active']);
  return session;
}
async function read(id: string) {
  return (await app.request('GET', `/api/sessions/${id}`)).body;
}
async function stopped(id: string) {
  return eventually(async () => {
    const session = await read(id);
    return session.status === 'stopped' && session;
  }, `${id} has stopped`);
}

describe('a session that expires', () => {
  it('ends when its time is up, not before, and has used all reserved credits', async () => {
    const { id, expires_at } = await create({ duration: '1m' });
    app.pass(Date.parse(expires_at) - app.now() - 500);
    expect((await read(id)).status).toBe('active');
    app.pass(1_000);
    expect(await stopped(id)).toMatchObject({
      ended_reason: 'expired',
      credits_used: 1,
      cdp_url: null,
    });
    const access = await app.request('GET', `/api/sessions/${id}/access`);
    expect([access.status, access.body.error]).toEqual([410, 'SESSION_ENDED']);
    expect(access.body.context.ended_reason).toBe('expired');
    expect(await app.ledger()).toMatchObject({ slotsInUse: 0, creditsReserved: 0, creditsUsed: 1 });
  });

  it('runs until its new end if it was extended', async () => {
    const { id } = await create({ duration: '1m' });
    await app.request('POST', `/api/sessions/${id}/extend`, { duration: '10m' });
    app.pass(2 * MINUTE);
    app.pass(8 * MINUTE);
    expect((await read(id)).status).toBe('active');
    app.pass(2 * MINUTE);
    expect(await stopped(id)).toMatchObject({ ended_reason: 'expired', credits_used: 11 });
  });

  it('costs the minutes that it ran, rounded up, if it is stopped before', async () => {
    const before = await app.ledger();
    const { id } = await create({ duration: '1h' });
    app.pass(4 * MINUTE + 30_000);
    await app.request('DELETE', `/api/sessions/${id}`);
    expect(await stopped(id)).toMatchObject({ ended_reason: 'user', credits_used: 5 });
    const after = await app.ledger();
    expect(after?.creditsUsed).toBe((before?.creditsUsed ?? 0) + 5);
    expect(after?.creditsReserved).toBe(before?.creditsReserved);
  });
});

describe('a session with an idle_timeout', () => {
  it('ends after that long without use, to the minute in which a use is recorded', async () => {
    const { id } = await create({ duration: '2h', idle_timeout: '5m' });
    app.pass(5 * MINUTE);
    expect((await read(id)).status).toBe('active');
    await app.request('GET', `/api/sessions/${id}/access`);
    app.pass(5 * MINUTE);
    expect((await read(id)).status).toBe('active');
    // A timer that fires while the session is in use is scheduled again, for the next possible end.
    await eventually(async () => {
      app.pass(MINUTE);
      return (await read(id)).status !== 'active';
    }, 'it is ended');
    expect(await stopped(id)).toMatchObject({ ended_reason: 'idle' });
  });
});

describe('last_accessed_at', () => {
  it('changes with an access, once a minute at most', async () => {
    const { id } = await create({ duration: '2h' });
    const access = async () => {
      await app.request('GET', `/api/sessions/${id}/access`);
      return (await read(id)).last_accessed_at as string;
    };
    expect((await read(id)).last_accessed_at).toBeNull();
    const first = await access();
    app.pass(30_000);
    expect(await access()).toBe(first);
    app.pass(31_000);
    expect(Date.parse(await access())).toBeGreaterThan(Date.parse(first) + MINUTE - 1);
  });
});
