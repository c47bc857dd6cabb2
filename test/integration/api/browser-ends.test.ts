import { describe, expect, it } from 'vitest';
import { eventually } from '#test/support/service/service.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** The API's view of a session whose browser ended without a stop. */

const { beforeAll, afterAll } = useVirtualTime();

const MINUTE = 60_000;
let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app?.[Symbol.asyncDispose]());

async function create() {
  const body = { duration: '1h', session_name: 'checkout' };
  const { status, body: session } = await app.request('POST', '/api/sessions', body);
  expect([status, session.status]).toEqual([201, 'active']);
  return session;
}
async function reaches(id: string, status: string) {
  return eventually(async () => {
    const session = (await app.request('GET', `/api/sessions/${id}`)).body;
    return session.status === status && session;
  }, `${id} is ${status}`);
}
const stop = (id: string) => app.request('DELETE', `/api/sessions/${id}`);

describe('a session whose user closed the browser', () => {
  it('is stopped, and costs the same as a stop at that moment', async () => {
    const before = await app.ledger();
    const [closed, stopped] = [await create(), await create()];
    app.pass(4 * MINUTE + 30_000);
    app.browsers.closeByUser(closed.autoscaler_workload_id);
    await stop(stopped.id);
    const shown = await reaches(closed.id, 'stopped');
    const { credits_used } = await reaches(stopped.id, 'stopped');
    expect(credits_used).toBe(5);
    expect(shown).toMatchObject({
      ended_reason: 'browser_closed',
      ended_at: expect.any(String),
      credits_used,
      ...{ cdp_url: null, vnc_url: null, viewer_url: null },
    });
    const after = await app.ledger();
    expect(after).toMatchObject({ slotsInUse: 0, creditsReserved: 0 });
    expect(after?.creditsUsed).toBe((before?.creditsUsed ?? 0) + 2 * credits_used);
    const access = await app.request('GET', `/api/sessions/${closed.id}/access`);
    expect([access.status, access.body.context]).toEqual([
      410,
      { session_id: closed.id, status: 'stopped', ended_reason: 'browser_closed' },
    ]);
    const again = await stop(closed.id);
    expect([again.status, again.body]).toEqual([
      200,
      { message: 'Session checkout has been stopped.', session_id: closed.id },
    ]);
  });
});

describe('a session that has failed', () => {
  it('is not reported as stopped if it is stopped afterwards', async () => {
    const { id, autoscaler_workload_id: workloadId } = await create();
    app.browsers.crash(workloadId);
    const failed = await reaches(id, 'failed');
    expect(failed.ended_reason).toBe('browser_crashed');
    const stopped = await stop(id);
    expect([stopped.status, stopped.body]).toEqual([
      200,
      { message: 'Session checkout had already failed.', session_id: id },
    ]);
    expect(await reaches(id, 'failed')).toEqual(failed);
  });
});
