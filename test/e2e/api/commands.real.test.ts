import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { errorOf, timestamp, type ApiClient } from '#test/support/clients/api-client.ts';
import type { ServiceLog } from '#test/support/service/service-log.ts';
import { eventually } from '#test/support/service/service.ts';
import { shareService, type SharedService } from '#test/support/shared/shared-service.ts';
import { lastOf } from '#test/support/stores/last-of.ts';

/** The effects of the commands: every read after the answer shows them. */

const HOUR = 3_600_000;
let shared: SharedService;
let acme: string;
let api: ApiClient;
let log: ServiceLog;

beforeAll(async () => {
  shared = await shareService();
  ({ log } = shared);
  ({ id: acme, owner: api } = await shared.organization('max'));
});
afterAll(() => shared?.[Symbol.asyncDispose]());

async function read(id: string) {
  return (await api.get(`/api/sessions/${id}`)).body;
}
/** The answer once the read model is current: until then it is refused. */
async function current(path: string) {
  return eventually(async () => {
    const { status, body } = await api.get(path);
    return status !== 503 && body;
  }, `${path} is answered`);
}
async function list() {
  return current('/api/sessions?status=active&limit=1');
}
async function count(): Promise<number> {
  return (await current('/api/status')).current_load.active_sessions;
}

describe('create', () => {
  it('answers at once if the client prefers that, and the session becomes active', async () => {
    const { status, body } = await api.create({}, { prefer: 'respond-async, wait=10' });
    expect(status).toBe(201);
    expect(body.status).toMatch(/^(creating|active)$/);
    await eventually(async () => (await read(body.id)).status === 'active', 'it is active');
  });
});

describe('an Idempotency-Key', () => {
  const body = { session_name: 'once', labels: { a: '1', b: '2' } };

  it('makes a repeated request return the same session, with a header that marks it', async () => {
    const headers = { 'idempotency-key': 'repeat' };
    const first = await api.create(body, headers);
    const before = await log.ledger(acme);
    // The same request, with its fields in another order.
    const again = await api.create({ labels: { b: '2', a: '1' }, session_name: 'once' }, headers);
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, 'true']);
    expect(again.body).toEqual(first.body);
    expect(await log.ledger(acme)).toEqual(before);
  });

  it('returns the present state of the session', async () => {
    const headers = { 'idempotency-key': 'ended' };
    const { id } = (await api.create({}, headers)).body;
    await api.stop(id);
    const again = await api.create({}, headers);
    expect([again.status, again.body.id, again.body.ended_reason]).toEqual([201, id, 'user']);
    await log.ended(acme, id);
  });

  it('is a conflict with another body, and creates nothing', async () => {
    const headers = { 'idempotency-key': 'conflict' };
    const { id } = (await api.create(body, headers)).body;
    const before = await log.ledger(acme);
    for (const other of [{}, { ...body, session_name: 'twice' }, { ...body, duration: '1h' }]) {
      const reply = await api.create(other, headers);
      expect(errorOf(reply)).toBe('409 IDEMPOTENCY_CONFLICT');
      expect(reply.body.context).toEqual({ session_id: id });
    }
    expect(await log.ledger(acme)).toEqual(before);
  });

  it('creates one session for twenty requests at once', async () => {
    const before = (await api.get('/api/sessions')).body.total;
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => api.create(body, { 'idempotency-key': 'stampede' })),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
    expect(new Set(replies.map(({ body }) => body.id)).size).toBe(1);
    expect(replies.filter(({ headers }) => !headers['idempotent-replayed'])).toHaveLength(1);
    expect((await api.get('/api/sessions')).body.total).toBe(before + 1);
  });
});

describe('extend', () => {
  it('moves the present expiry each time, and reserves credits', async () => {
    const { id, expires_at } = (await api.create({ duration: '1h' })).body;
    const before = await log.ledger(acme);
    await api.extend(id, '30m');
    const { body } = await api.extend(id, '30m');
    expect(Date.parse(body.expires_at) - Date.parse(expires_at)).toBe(HOUR);
    const after = await log.ledger(acme);
    expect(after?.creditsReserved).toBe((before?.creditsReserved ?? 0) + 60);
    expect(after?.creditsAvailable).toBe((before?.creditsAvailable ?? 0) - 60);
  });

  it('is limited by MAX_LIFETIME', async () => {
    const { id } = (await api.create({ duration: '24h' })).body;
    for (const duration of ['24h', '23h59m'])
      expect((await api.extend(id, duration)).status).toBe(200);
    const before = await read(id);
    const reply = await api.extend(id, '2m');
    expect(errorOf(reply)).toBe('400 INVALID_DURATION');
    expect(reply.body.context.duration).toBe('2m');
    expect(await read(id)).toEqual(before);
    expect((await api.extend(id, '1m')).status).toBe(200);
  });

  it('is refused once the session is ending or has ended', async () => {
    const { id } = (await api.create()).body;
    await api.stop(id);
    const reply = await api.extend(id, '1h');
    expect(errorOf(reply)).toBe('409 SESSION_NOT_ACTIVE');
    expect(reply.body.context).toMatchObject({ session_id: id, status: /^stopp/ });
    await eventually(async () => (await read(id)).status === 'stopped', 'it has stopped');
    expect(errorOf(await api.extend(id, '1h'))).toBe('409 SESSION_NOT_ACTIVE');
  });

  it('adds up over concurrent requests', async () => {
    const { id, expires_at } = (await api.create({ duration: '1h' })).body;
    const replies = await Promise.all(Array.from({ length: 10 }, () => api.extend(id, '1h')));
    expect(replies.map(({ status }) => status)).toEqual(Array(10).fill(200));
    const extended = Date.parse((await read(id)).expires_at) - Date.parse(expires_at);
    expect(extended).toBe(10 * HOUR);
  });
});

describe('stop', () => {
  it('is idempotent: a repeat gets the same answer and appends nothing', async () => {
    const { id } = (await api.create()).body;
    const first = await api.stop(id);
    await eventually(async () => (await read(id)).status === 'stopped', 'it has stopped');
    const before = [await read(id), await lastOf(log.eventStore, [`evt.${acme}.>`])];
    const again = await api.stop(id);
    expect([again.status, again.body.session_id]).toEqual([200, first.body.session_id]);
    expect([await read(id), await lastOf(log.eventStore, [`evt.${acme}.>`])]).toEqual(before);
  });

  it('is final: minutes are billed, other credits released, the addresses are null', async () => {
    const before = await log.ledger(acme);
    const { id } = (await api.create({ duration: '10h' })).body;
    await api.stop(id);
    await eventually(async () => (await read(id)).status === 'stopped', 'it has stopped');
    expect(await read(id)).toMatchObject({
      ended_at: timestamp,
      ended_reason: 'user',
      credits_used: 1,
      cdp_url: null,
      vnc_url: null,
      vnc_password: null,
      access_urls: { cdp_url: null, vnc_url: null },
    });
    const after = await log.ledger(acme);
    expect(after?.creditsAvailable).toBe((before?.creditsAvailable ?? 0) - 1);
    expect(after?.slotsInUse).toBe(before?.slotsInUse);
    const access = await api.get(`/api/sessions/${id}/access`);
    expect(errorOf(access)).toBe('410 SESSION_ENDED');
    const ended = { session_id: id, status: 'stopped', ended_reason: 'user' };
    expect(access.body.context).toEqual(ended);
  });

  it('twenty times at once ends the session once', async () => {
    const { id } = (await api.create()).body;
    const replies = await Promise.all(Array.from({ length: 20 }, () => api.stop(id)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    await eventually(async () => (await read(id)).status === 'stopped', 'it has stopped');
    const ends: string[] = [];
    const session = { kind: 'session', organizationId: acme, id } as const;
    for await (const { type } of log.eventStore.history<'session'>(session))
      if (type.startsWith('session.stop')) ends.push(type);
    expect(ends).toEqual(['session.stop-requested', 'session.stopped']);
  });
});

describe('read your writes', () => {
  const ROUNDS = 20;

  test('twenty times: single read, list and status show the effect of a 2xx', async () => {
    const idle = await list();
    for (let round = 0; round < ROUNDS; round += 1) {
      const { body } = await api.create({ duration: '1h' });
      expect(body.status).toBe('active');
      const [single, page, load] = await Promise.all([read(body.id), list(), count()]);
      expect(single).toEqual(body);
      expect([page.total, page.sessions[0].id, load]).toEqual([
        idle.total + 1,
        body.id,
        idle.total + 1,
      ]);
      const { expires_at } = (await api.extend(body.id, '5m')).body;
      const [extended, row] = await Promise.all([read(body.id), list()]);
      expect([extended.expires_at, row.sessions[0].expires_at]).toEqual([expires_at, expires_at]);
      await api.stop(body.id);
      const [stopped, rest, left] = await Promise.all([read(body.id), list(), count()]);
      expect(stopped.status).toMatch(/^stopp/);
      expect([rest.total, left]).toEqual([idle.total, idle.total]);
    }
  });
});

describe('the pool', () => {
  it('has counters that add up in every answer', async () => {
    let looks = 0;
    const isSeen = () => looks > 3;
    const work = Array.from({ length: 30 }, async () => {
      do {
        const { id } = (await api.create()).body;
        await api.stop(id);
      } while (!isSeen());
    });
    const done = Promise.all(work).then(() => true);
    while (!(await Promise.race([done, Promise.resolve(false)]))) {
      const { total, ...parts } = (await current('/api/status')).autoscaler.pool_status;
      const sum = Object.values<number>(parts).reduce((all, count) => all + count, 0);
      expect(sum).toBe(total);
      looks += 1;
    }
  });
});
