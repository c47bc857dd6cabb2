import { expect, test } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import type { OrganizationEvent, Role } from '#events/organization.ts';
import { createAccess } from '#projections/access.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { requested } from '#test/support/examples.ts';
import { record, sessionRef } from '#test/support/history.ts';

const acme = { kind: 'organization', organizationId: 'org_acme' } as const;
const hashes = { a: 'aa'.repeat(32), b: 'bb'.repeat(32) };

const registered: OrganizationEvent = {
  type: 'organization.registered',
  data: { name: 'Acme', tier: 'free' },
};
const promoted: OrganizationEvent = { type: 'organization.tier-changed', data: { tier: 'pro' } };

function issued(keyId: string, hash: string, role: Role = 'member'): OrganizationEvent {
  return { type: 'organization.key-issued', data: { keyId, hash, role, userId: 'user_1' } };
}

function revoked(keyId: string): OrganizationEvent {
  return { type: 'organization.key-revoked', data: { keyId } };
}

async function historyOf(...happened: OrganizationEvent[]): Promise<RecordedEvent[]> {
  return record<'organization'>(createMemoryEventStore(), acme, ...happened);
}

async function accessAfter(...happened: OrganizationEvent[]) {
  const access = createAccess();
  for (const event of await historyOf(...happened)) access.apply(event);
  return access;
}

test('the organization’s keys can be read from an event that carries its state forward', async () => {
  const life = [registered, issued('key_a', hashes.a), issued('key_b', hashes.b), revoked('key_b')];
  const carried = { type: 'organization.carried-forward', data: { archivedUpTo: 4 } } as const;
  const [last] = (await historyOf(...life, carried)).slice(-1);
  const access = createAccess();
  if (last !== undefined) access.apply(last);
  expect(access.byKeyHash(hashes.a)).toMatchObject({ keyId: 'key_a', tier: 'free' });
  expect(access.byKeyHash(hashes.b)).toBeNull();
});

test('a key grants its role in its organization', async () => {
  const access = await accessAfter(registered, issued('key_a', hashes.a, 'admin'));
  expect(access.byKeyHash(hashes.a)).toEqual({
    organizationId: 'org_acme',
    tier: 'free',
    keyId: 'key_a',
    role: 'admin',
    userId: 'user_1',
  });
  expect(access.byKeyHash(hashes.b)).toBeNull();
  expect(access.organization('org_acme')).toEqual({ name: 'Acme', tier: 'free' });
  expect(access.organization('org_other')).toBeNull();
});

test('a revoked key grants nothing; other keys stay', async () => {
  const keys = [issued('key_a', hashes.a), issued('key_b', hashes.b)];
  const access = await accessAfter(registered, ...keys, revoked('key_a'));
  expect(access.byKeyHash(hashes.a)).toBeNull();
  expect(access.byKeyHash(hashes.b)).toMatchObject({ keyId: 'key_b' });
});

test('a new tier applies to existing keys', async () => {
  const access = await accessAfter(registered, issued('key_a', hashes.a), promoted);
  expect(access.byKeyHash(hashes.a)).toMatchObject({ tier: 'pro' });
  expect(access.organization('org_acme')).toMatchObject({ tier: 'pro' });
});

test('a redelivered event restores no revoked key', async () => {
  const history = await historyOf(registered, issued('key_a', hashes.a), revoked('key_a'));
  const access = createAccess();
  for (const event of [...history, ...history]) access.apply(event);
  expect(access.byKeyHash(hashes.a)).toBeNull();
});

test('other aggregates’ events change nothing', async () => {
  const access = await accessAfter(registered);
  const [event] = await record<'session'>(createMemoryEventStore(), sessionRef(), requested());
  if (event !== undefined) access.apply(event);
  expect(access.organization('org_acme')).toEqual({ name: 'Acme', tier: 'free' });
});

test('an event with a state of another version throws', async () => {
  const [event] = await historyOf(registered);
  const foreign = { ...event, state: null } as unknown as RecordedEvent;
  expect(() => createAccess().apply(foreign)).toThrow('another version');
});
