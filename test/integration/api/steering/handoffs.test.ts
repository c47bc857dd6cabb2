import { describe, expect, it } from 'vitest';
import { eventually } from '#test/support/service/service.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** Hand-offs over HTTP, on a clock that the test moves. */

const { beforeAll, afterAll } = useVirtualTime();

const MINUTE = 60_000;
let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app?.[Symbol.asyncDispose]());

const as = (caller: string) => ({ authorization: `Bearer ${caller}` });
const [agent, bea, cy, viewer] = ['member/agent', 'member/bea', 'member/cy', 'viewer/vic'].map(as);

async function create(body: object = { duration: '2h' }): Promise<string> {
  return (await app.request('POST', '/api/sessions', body)).body.id;
}
async function ask(id: string, body: object = { instructions: 'Sign in.' }, more: object = {}) {
  return app.request('POST', `/api/sessions/${id}/handoffs`, body, { ...agent, ...more });
}
async function say(id: string, handoff: string, what: 'take' | 'complete', who = bea, body = {}) {
  const path = `/api/sessions/${id}/handoffs/${handoff}/${what}`;
  return app.request('POST', path, what === 'take' ? undefined : body, who);
}
const read = (path: string, who = viewer) => app.request('GET', `/api/${path}`, undefined, who);

describe('a hand-off', () => {
  it('is requested, taken and given back, and each step is shown to all', async () => {
    const id = await create();
    expect((await read(`sessions/${id}`)).body.handoff).toBeNull();
    const asked = await ask(id, { instructions: 'Sign in.\nThen stop.', timeout: '5m' });
    expect(asked.status).toBe(201);
    const handoff = asked.body.id;
    const fields = {
      id: handoff,
      session_id: id,
      instructions: 'Sign in.\nThen stop.',
      requested_by: 'agent',
    };
    expect(asked.body).toMatchObject({ ...fields, status: 'requested', taken_by: null });
    expect(Date.parse(asked.body.expires_at) - Date.parse(asked.body.requested_at)).toBe(
      5 * MINUTE,
    );
    expect((await read(`sessions/${id}`)).body.handoff).toEqual(asked.body);
    expect((await read('handoffs?status=requested')).body.handoffs).toEqual([asked.body]);
    expect((await read('handoffs?status=taken')).body.handoffs).toEqual([]);

    const taken = await say(id, handoff, 'take');
    expect(taken.status).toBe(200);
    expect(taken.body).toMatchObject({
      ...fields,
      status: 'taken',
      taken_by: 'bea',
      viewer_url: `http://host:1/vnc/${handoff}/`,
      vnc_url: `wss://host:2/vnc/${handoff}/websockify`,
    });
    expect(taken.body.vnc_password).toMatch(/^password-of-/);
    expect(await say(id, handoff, 'take')).toEqual(taken);
    expect((await read('handoffs')).body.handoffs).toMatchObject([{ id: handoff }]);

    const given = await say(id, handoff, 'complete', bea, { success: true, note: 'Done.' });
    expect(given).toMatchObject({
      status: 200,
      body: { ...fields, status: 'completed', success: true, note: 'Done.' },
    });
    expect(given.body.completed_at).not.toBeNull();
    expect(await say(id, handoff, 'complete', bea, { success: true })).toEqual(given);
    expect((await read('handoffs')).body.handoffs).toEqual([]);
    expect((await read(`sessions/${id}/handoffs/${handoff}`)).body).toEqual(given.body);
  });

  it('is one of its session’s, newest first, and each can be read', async () => {
    const id = await create();
    const all: unknown[] = [];
    for (const instructions of ['one', 'two', 'three']) {
      const { body } = await ask(id, { instructions });
      all.unshift((await say(id, body.id, 'complete', bea, { success: false })).body);
    }
    expect((await read(`sessions/${id}/handoffs`)).body.handoffs).toEqual(all);
    const [, , first] = all as { id: string }[];
    expect((await read(`sessions/${id}/handoffs/${first?.id}`)).body).toEqual(first);
    expect((await read(`sessions/${await create()}/handoffs`)).body).toEqual({ handoffs: [] });
  });

  it('is taken and given back by one person alone', async () => {
    const id = await create();
    const { id: handoff } = (await ask(id)).body;
    const context = { handoff_id: handoff, status: 'taken', taken_by: 'bea' };
    expect(await ask(id)).toMatchObject({
      status: 409,
      body: {
        error: 'HANDOFF_CONFLICT',
        context: { ...context, status: 'requested', taken_by: null },
      },
    });
    await say(id, handoff, 'take');
    for (const refused of [
      await say(id, handoff, 'take', cy),
      await say(id, handoff, 'complete', cy, { success: true }),
    ])
      expect(refused).toMatchObject({ status: 409, body: { error: 'HANDOFF_CONFLICT', context } });
    const unknown = await say(id, 'hof_other', 'take');
    expect(unknown).toMatchObject({ status: 404, body: { error: 'HANDOFF_NOT_FOUND' } });
    expect((await read(`sessions/${id}/handoffs/hof_other`)).status).toBe(404);
  });

  it('is not requested, taken or given back by a viewer', async () => {
    const id = await create();
    const { id: handoff } = (await ask(id)).body;
    for (const refused of [
      await app.request('POST', `/api/sessions/${id}/handoffs`, { instructions: 'x' }, viewer),
      await say(id, handoff, 'take', viewer),
      await say(id, handoff, 'complete', viewer, { success: true }),
    ])
      expect(refused).toMatchObject({ status: 403, body: { error: 'FORBIDDEN' } });
  });

  it('expires after its timeout, taken or not, and its session is not idle until then', async () => {
    for (const isTaken of [false, true]) {
      const id = await create({ duration: '2h', idle_timeout: '1m' });
      const { id: handoff } = (await ask(id, { instructions: 'x', timeout: '10m' })).body;
      if (isTaken) await say(id, handoff, 'take');
      app.pass(9 * MINUTE);
      expect((await read(`sessions/${id}`)).body.status).toBe('active');
      app.pass(MINUTE + 1_000);
      const expired = await eventually(async () => {
        const { body } = await read(`sessions/${id}/handoffs/${handoff}`);
        return body.status === 'expired' && body;
      }, 'it has expired');
      expect(expired).toMatchObject({ success: null, note: null, completed_at: null });
      const late = await say(id, handoff, 'take');
      expect(late.body.error).toMatch(/HANDOFF_CONFLICT|SESSION_ENDED/);
    }
  });

  it('ends with its session', async () => {
    const id = await create();
    const { id: handoff } = (await ask(id)).body;
    await app.request('DELETE', `/api/sessions/${id}`);
    await eventually(async () => {
      const { body } = await read(`sessions/${id}/handoffs/${handoff}`);
      return body.status === 'expired';
    }, 'it has expired');
    expect((await ask(id)).body.error).toBe('SESSION_ENDED');
    expect((await read('handoffs')).body.handoffs).not.toContainEqual(
      expect.objectContaining({ id: handoff }),
    );
  });

  it('is requested once by a request that is repeated with its Idempotency-Key', async () => {
    const id = await create();
    const key = { 'idempotency-key': 'once' };
    const first = await ask(id, { instructions: 'x' }, key);
    expect(await ask(id, { instructions: 'x' }, key)).toEqual(first);
    expect((await ask(id, { instructions: 'y' }, key)).body.error).toBe('IDEMPOTENCY_CONFLICT');
    expect((await read(`sessions/${id}/handoffs`)).body.handoffs).toHaveLength(1);
  });

  it('needs instructions, a duration, and a screen', async () => {
    const id = await create();
    for (const [body, error] of [
      [{}, 'INVALID_REQUEST'],
      [{ instructions: '' }, 'INVALID_REQUEST'],
      [{ instructions: 'x'.repeat(2049) }, 'INVALID_REQUEST'],
      [{ instructions: 'a\u0000b' }, 'INVALID_REQUEST'],
      [{ instructions: 'x', timeout: '25h' }, 'INVALID_DURATION'],
      [{ instructions: 'x', timeout: 5 }, 'INVALID_DURATION'],
    ] as const)
      expect((await ask(id, body)).body.error).toBe(error);
    const headless = await create({ headless: true });
    expect(await ask(headless)).toMatchObject({
      status: 400,
      body: { context: { headless: true } },
    });
    expect((await ask('ses_none')).body.error).toBe('SESSION_NOT_FOUND');
    expect((await ask('no id at all')).status).toBe(404);
    const { id: handoff } = (await ask(id)).body;
    expect((await say(id, handoff, 'complete', bea, {})).body.error).toBe('INVALID_REQUEST');
  });
});
