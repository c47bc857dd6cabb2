import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { errorOf, type ApiClient } from '#test/support/clients/api-client.ts';
import type { ServiceLog } from '#test/support/service/service-log.ts';
import { eventually } from '#test/support/service/service.ts';
import { shareService, type SharedService } from '#test/support/shared/shared-service.ts';
import { lastOf } from '#test/support/stores/last-of.ts';

/** Permissions of roles, and the isolation of organizations. */

let shared: SharedService;
let log: ServiceLog;
let acme: string;
let owner: ApiClient;
let anybody: ApiClient;

beforeAll(async () => {
  shared = await shareService();
  ({ log, anybody } = shared);
  ({ id: acme, owner } = await shared.organization());
});
afterAll(() => shared?.[Symbol.asyncDispose]());

describe('a viewer', () => {
  let viewer: ApiClient;
  let id: string;
  beforeAll(async () => {
    viewer = await shared.clientOf(acme, 'viewer');
    id = (await owner.create({ session_name: 'watched' })).body.id;
  });

  it('reads all fields except those that give control', async () => {
    const { body } = await viewer.get(`/api/sessions/${id}`);
    expect(body).toMatchObject({ id, status: 'active', organization_role: 'viewer' });
    const none = { vnc_url: null, cdp_url: null };
    const all = { ...none, vnc_password: null, viewer_url: null, access_urls: none };
    expect(body).toMatchObject(all);
    const { cdp_url, vnc_url, vnc_password } = (await owner.get(`/api/sessions/${id}`)).body;
    for (const secret of [cdp_url, vnc_url, vnc_password]) {
      expect(secret).toBeTypeOf('string');
      expect(JSON.stringify(body)).not.toContain(secret);
    }
    expect((await viewer.get('/api/sessions')).body.total).toBe(1);
    expect((await viewer.get('/api/status')).status).toBe(200);
  });

  it('controls nothing', async () => {
    const before = await lastOf(log.eventStore, [`evt.${acme}.>`]);
    for (const reply of [
      await viewer.get(`/api/sessions/${id}/access`),
      await viewer.create(),
      await viewer.extend(id, '1h'),
      await viewer.stop(id),
      // The refusal does not reveal whether the session exists.
      await viewer.stop('ses_none'),
      await viewer.create({ duration: 'nonsense' }),
    ]) {
      expect(errorOf(reply)).toBe('403 FORBIDDEN');
      expect(reply.body.context).toEqual({ role: 'viewer', action: 'control' });
    }
    expect(await lastOf(log.eventStore, [`evt.${acme}.>`])).toBe(before);
    await owner.stop(id);
    await log.ended(acme, id);
  });
});

describe('members and admins', () => {
  test.each(['member', 'admin'] as const)(
    'a %s creates, connects, extends and stops',
    async (role) => {
      const caller = await shared.clientOf(acme, role);
      const { status, body } = await caller.create();
      expect([status, body.organization_role, body.user_id]).toEqual([201, role, `${role}-user`]);
      expect((await caller.get(`/api/sessions/${body.id}/access`)).status).toBe(200);
      expect((await caller.extend(body.id, '1h')).status).toBe(200);
      expect((await caller.stop(body.id)).status).toBe(200);
      await log.ended(acme, body.id);
    },
  );
});

describe('another organization', () => {
  it('cannot see a session: the answers are those for an unknown id', async () => {
    const { id: umbrella, owner: otherOwner } = await shared.organization();
    const { id } = (await owner.create({ labels: { secret: 'plan' } })).body;
    const before = await lastOf(log.eventStore, [`evt.${acme}.>`]);
    for (const path of ['', '/access', '/extend'])
      for (const method of ['GET', 'POST', 'DELETE']) {
        const paths = [id, 'ses_AAAAAAAAAAAAAAAAAAAAAA'].map(
          (one) => `/api/sessions/${one}${path}`,
        );
        const body = method === 'POST' ? { duration: '1h' } : undefined;
        const [theirs, missing] = await Promise.all(
          paths.map((one) => otherOwner.send(method, one, { body })),
        );
        expect(theirs?.status).toBe(missing?.status);
        if (theirs?.status === 405) continue;
        expect(errorOf(theirs as never)).toBe('404 SESSION_NOT_FOUND');
        expect(theirs?.body.context).toEqual({ session_id: id });
        expect(theirs?.body.message).toBe(missing?.body.message);
      }
    expect((await otherOwner.get('/api/sessions')).body).toMatchObject({ sessions: [], total: 0 });
    expect((await otherOwner.get('/api/sessions?label=secret=plan')).body.total).toBe(0);
    expect((await otherOwner.get('/api/status')).body.current_load).toEqual({
      active_sessions: 0,
      organization_id: umbrella,
    });
    expect(await lastOf(log.eventStore, [`evt.${acme}.>`])).toBe(before);
    expect((await owner.get(`/api/sessions/${id}`)).body.status).toBe('active');
    await owner.stop(id);
  });

  it('may use the same Idempotency-Key for a session of its own', async () => {
    const { owner: other } = await shared.organization();
    const headers = { 'idempotency-key': 'the-same' };
    const [ours, theirs] = [await owner.create({}, headers), await other.create({}, headers)];
    expect(theirs.headers['idempotent-replayed']).toBeUndefined();
    expect(theirs.body.id).not.toBe(ours.body.id);
    await Promise.all([owner.stop(ours.body.id), other.stop(theirs.body.id)]);
  });
});

describe('a list', () => {
  let caller: ApiClient;
  const made: string[] = [];
  beforeAll(async () => {
    ({ owner: caller } = await shared.organization());
    for (let at = 0; at < 12; at += 1) {
      const labels = {
        parity: at % 2 === 0 ? 'even' : 'odd',
        third: `${at % 3}`,
        'a.b-c_d': 'x=y',
      };
      made.push((await caller.create({ session_name: `s${at}`, labels })).body.id);
    }
    for (const id of made.slice(0, 3)) await caller.stop(id);
    await eventually(
      async () => (await caller.get('/api/sessions?status=stopped')).body.total === 3,
      'they have stopped',
    );
  });

  const names = async (query: string) => {
    const { body } = await caller.get(`/api/sessions?${query}`);
    const sessions = body.sessions.map((one: { session_name: string }) => one.session_name);
    return { names: sessions.join(' '), total: body.total, ...body.pagination };
  };

  it.each([
    ['', 's11 s10 s9 s8 s7 s6 s5 s4 s3 s2 s1 s0', 12, 20, 0],
    ['limit=5', 's11 s10 s9 s8 s7', 12, 5, 0],
    ['limit=5&offset=5', 's6 s5 s4 s3 s2', 12, 5, 5],
    ['limit=5&offset=10', 's1 s0', 12, 5, 10],
    ['offset=12', '', 12, 20, 12],
    ['offset=9007199254740991', '', 12, 20, Number.MAX_SAFE_INTEGER],
    ['status=active', 's11 s10 s9 s8 s7 s6 s5 s4 s3', 9, 20, 0],
    ['status=stopped&limit=1', 's2', 3, 1, 0],
    ['status=failed', '', 0, 20, 0],
    ['label=parity=even', 's10 s8 s6 s4 s2 s0', 6, 20, 0],
    ['label=parity=even&label=third=0', 's6 s0', 2, 20, 0],
    ['label=parity=even&label=third=0&status=active', 's6', 1, 20, 0],
    ['label=parity=even&status=active&limit=2&offset=1', 's8 s6', 4, 2, 1],
    ['label=a.b-c_d=x%3Dy&limit=1', 's11', 12, 1, 0],
    ['label=parity=even&label=parity=odd', '', 0, 20, 0],
    ['label=parity=', '', 0, 20, 0],
    ['label=nothing=here', '', 0, 20, 0],
  ])('?%s', async (query, expected, total, limit, offset) => {
    expect(await names(query)).toEqual({ names: expected, total, limit, offset });
  });
});

it('a revoked key is UNAUTHORIZED, also on an open connection', async () => {
  const key = await log.issueKey(acme, 'member', anybody);
  const caller = anybody.as(key);
  expect((await caller.get('/api/status')).status).toBe(200);
  await log.revokeKey(acme, key);
  await eventually(
    async () => (await caller.get('/api/status')).status === 401,
    'the key is refused',
  );
  expect(errorOf(await caller.create())).toBe('401 UNAUTHORIZED');
});
