import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import type { RecordedOf } from '#events/events.ts';
import type { Role } from '#events/organization.ts';
import { defaultTiers } from '#src/kernel/domain/organization/tiers.ts';
import { hashKey } from '#src/kernel/ids.ts';
import { errorOf, timestamp, type ApiClient } from '#test/support/clients/api-client.ts';
import type { ServiceLog } from '#test/support/service/service-log.ts';
import { shareService, type SharedService } from '#test/support/shared/shared-service.ts';

/** API keys that an organization manages itself, and its balance. */

let shared: SharedService;
let acme: string;
let log: ServiceLog;
let anybody: ApiClient;
let owner: ApiClient;
const clients: Partial<Record<Role, ApiClient>> = {};

beforeAll(async () => {
  shared = await shareService();
  ({ log, anybody } = shared);
  ({ id: acme, owner } = await shared.organization('pro', 500));
  clients.owner = owner;
  for (const role of ['admin', 'member', 'viewer'] as const)
    clients[role] = await shared.clientOf(acme, role);
});
afterAll(() => shared?.[Symbol.asyncDispose]());

const as = (role: Role) => clients[role] ?? anybody;
const issue = (client: ApiClient, body: unknown) => client.send('POST', '/api/keys', { body });
const revoke = (client: ApiClient, id: string) => client.send('DELETE', `/api/keys/${id}`);
const keysOf = async (client: ApiClient) =>
  (await client.get('/api/keys')).body.keys as { key_id: string; role: string }[];

async function history(organizationId: string): Promise<RecordedOf<'organization'>[]> {
  const events = [];
  for await (const event of log.eventStore.history<'organization'>({
    kind: 'organization',
    organizationId,
  }))
    events.push(event);
  return events;
}

describe('a key', () => {
  it('is shown once, works at once, and is stored nowhere', async () => {
    const { status, body, headers } = await issue(owner, { role: 'member', user_id: 'Ci 機' });
    expect(status).toBe(201);
    expect(body).toEqual({
      key_id: expect.stringMatching(/^key_[\w-]{22}$/),
      role: 'member',
      user_id: 'Ci 機',
      issued_at: timestamp,
      api_key: expect.stringMatching(new RegExp(`^bss_${acme}_[\\w-]{32}$`)),
    });
    expect(headers['cache-control']).toBe('no-store');
    const created = await anybody.as(body.api_key).create();
    expect([created.status, created.body.user_id]).toEqual([201, 'Ci 機']);
    await owner.stop(created.body.id);

    const { api_key, ...listed } = body;
    expect(await keysOf(owner)).toContainEqual(listed);
    const events = await history(acme);
    expect(events.at(-1)).toMatchObject({
      type: 'organization.key-issued',
      metadata: { actor: { kind: 'user', id: 'owner-user' } },
      data: { keyId: body.key_id, hash: hashKey(api_key) },
    });
    const secret = api_key.slice(`bss_${acme}_`.length);
    expect(JSON.stringify(events)).not.toContain(secret);
    expect(JSON.stringify(await keysOf(owner))).not.toContain(secret);
    expect(shared.service.output()).not.toContain(secret);
  });

  it('belongs to the caller if the request names no user', async () => {
    expect((await issue(as('admin'), { role: 'viewer' })).body.user_id).toBe('admin-user');
  });

  it('is refused once its revocation is answered, and removed from the list', async () => {
    const { key_id, api_key } = (await issue(owner, { role: 'member' })).body;
    const caller = anybody.as(api_key);
    expect((await caller.get('/api/status')).status).toBe(200);
    const { status, body } = await revoke(as('admin'), key_id);
    expect(status).toBe(200);
    const message = `Key ${key_id} has been revoked; its connections are being closed.`;
    expect(body).toEqual({ message, key_id });
    expect(errorOf(await caller.get('/api/status'))).toBe('401 UNAUTHORIZED');
    expect((await keysOf(owner)).map((key) => key.key_id)).not.toContain(key_id);
    expect(errorOf(await revoke(owner, key_id))).toBe('404 KEY_NOT_FOUND');
  });

  it('may revoke itself', async () => {
    const { key_id, api_key } = (await issue(owner, { role: 'admin' })).body;
    expect((await revoke(anybody.as(api_key), key_id)).status).toBe(200);
    expect(errorOf(await anybody.as(api_key).get('/api/keys'))).toBe('401 UNAUTHORIZED');
  });
});

describe('roles', () => {
  it('an owner issues and revokes keys of any role', async () => {
    for (const role of ['owner', 'admin', 'member', 'viewer']) {
      const { status, body } = await issue(owner, { role });
      expect([status, body.role]).toEqual([201, role]);
      expect((await anybody.as(body.api_key).get('/api/organization')).status).toBe(200);
      expect((await revoke(owner, body.key_id)).status).toBe(200);
    }
  });

  it('an admin can neither issue nor revoke an owner’s key', async () => {
    const before = await history(acme);
    const issued = await issue(as('admin'), { role: 'owner' });
    expect(errorOf(issued)).toBe('403 FORBIDDEN');
    expect(issued.body.context).toEqual({ role: 'admin', action: 'issue an owner key' });
    const ownersKey =
      (await keysOf(as('admin'))).find(({ role }) => role === 'owner')?.key_id ?? '';
    const revoked = await revoke(as('admin'), ownersKey);
    expect(errorOf(revoked)).toBe('403 FORBIDDEN');
    expect(revoked.body.context).toEqual({ role: 'admin', action: 'revoke an owner key' });
    expect(await history(acme)).toHaveLength(before.length);
  });

  test.each(['member', 'viewer'] as const)('a %s cannot manage keys', async (role) => {
    const before = await history(acme);
    for (const reply of [
      await as(role).get('/api/keys'),
      await issue(as(role), { role: 'viewer' }),
      await issue(as(role), { role: 'nonsense' }),
      await revoke(as(role), before.at(-1)?.state?.keys[0]?.keyId ?? ''),
      await revoke(as(role), 'key_none'),
    ]) {
      expect(errorOf(reply)).toBe('403 FORBIDDEN');
      expect(reply.body.context).toEqual({ role, action: 'administer' });
    }
    expect(await history(acme)).toHaveLength(before.length);
  });
});

describe('a request is refused for', () => {
  test.each<[string, unknown]>([
    ['no body', undefined],
    ['no role', {}],
    ['an unknown role', { role: 'root' }],
    ['a role of every object', { role: 'constructor' }],
    ['an empty user', { role: 'member', user_id: '' }],
    ['a user of 257 characters', { role: 'member', user_id: 'u'.repeat(257) }],
    ['a user with a line feed', { role: 'member', user_id: 'a\nb' }],
    ['a user with half a character', { role: 'member', user_id: 'a\ud83d' }],
    ['an unknown field', { role: 'member', name: 'ci' }],
    ['a key chosen by the caller', { role: 'member', api_key: 'bss_acme_mine' }],
    ['a list', []],
  ])('%s', async (_, body) => {
    expect(errorOf(await issue(owner, body))).toBe('400 INVALID_REQUEST');
  });

  test.each(['key_none', 'a.b', '*', '>', '%00', '%2F', 'x'.repeat(65), 'bss_acme_x'])(
    'the revocation of %s, which is not the id of a key',
    async (id) => {
      const { status, body } = await revoke(owner, id);
      expect([status, body.error]).toEqual([404, 'KEY_NOT_FOUND']);
      expect(body.context).toEqual({ key_id: decodeURIComponent(id) });
    },
  );

  it('another organization’s key, like one that does not exist', async () => {
    const { owner: otherOwner } = await shared.organization();
    const { key_id, api_key } = (await issue(owner, { role: 'member' })).body;
    const [theirs, missing] = [
      await revoke(otherOwner, key_id),
      await revoke(otherOwner, 'key_AAAAAAAAAAAAAAAAAAAAAA'),
    ];
    expect(errorOf(theirs)).toBe('404 KEY_NOT_FOUND');
    expect(JSON.stringify(theirs.body).replace(key_id, '…')).toBe(
      JSON.stringify(missing.body).replace('key_AAAAAAAAAAAAAAAAAAAAAA', '…'),
    );
    expect((await anybody.as(api_key).get('/api/status')).status).toBe(200);
    expect((await keysOf(otherOwner)).map(({ role }) => role)).toEqual(['owner']);
  });
});

describe('GET /api/organization', () => {
  it('shows every role the tier, limits, credits and the sessions that count', async () => {
    const { id: initech } = await shared.organization('pro', 500);
    const caller = await shared.clientOf(initech, 'member');
    const viewer = await shared.clientOf(initech, 'viewer');
    const { concurrentSessions } = defaultTiers.pro;
    const limits = { requests_per_minute: 1_000_000, concurrent_sessions: concurrentSessions };
    const named = { id: initech, name: initech };
    const asked = { organization_role: 'viewer', user_id: 'viewer-user' };
    const about = { ...named, ...asked, tier: 'pro', limits, allowed_origins: [] };
    const credits = { balance: 500, reserved: 0, used: 0, granted: 500 };
    const before = await viewer.get('/api/organization');
    expect(before.body).toEqual({ ...about, concurrent_sessions: 0, credits });
    // The next answer contains the credits that a create has reserved.
    const { id } = (await caller.create({ duration: '2h' })).body;
    expect((await viewer.get('/api/organization')).body).toEqual({
      ...about,
      concurrent_sessions: 1,
      credits: { balance: 380, reserved: 120, used: 0, granted: 500 },
    });
    await caller.stop(id);
  });
});
