import { describe, it } from 'vitest';
import type { ApiKey, OrganizationEvent } from '#events/organization.ts';
import { KEYS_MAX } from '#src/kernel/domain/organization/organization.ts';
import { organization } from '#test/support/given-when-then.ts';

const { given } = organization;
const registered: OrganizationEvent = {
  type: 'organization.registered',
  data: { name: 'Acme', tier: 'free' },
};

function key(keyId: string): ApiKey {
  return { keyId, hash: 'ab'.repeat(32), role: 'member', userId: 'user_1' };
}
function issued(keyId: string): OrganizationEvent {
  return { type: 'organization.key-issued', data: key(keyId) };
}
function revoked(keyId: string): OrganizationEvent {
  return { type: 'organization.key-revoked', data: { keyId } };
}

describe('an organization', () => {
  const register = { type: 'RegisterOrganization', name: 'Acme', tier: 'free' } as const;

  it('is registered with a name and a tier', () => {
    given().when(register).then(registered);
    given(registered).stateIs({ id: 'org_acme', name: 'Acme', tier: 'free', keys: [] });
  });

  it('is registered once', () => {
    given(registered).when(register).thenRejected('INVALID_REQUEST');
  });

  it('changes its tier', () => {
    const changed: OrganizationEvent = { type: 'organization.tier-changed', data: { tier: 'pro' } };
    given(registered).when({ type: 'ChangeTier', tier: 'pro' }).then(changed);
    given(registered, changed).stateIs({ tier: 'pro', name: 'Acme' });
  });

  it('does not change to the tier it has', () => {
    given(registered).when({ type: 'ChangeTier', tier: 'free' }).thenNothing();
  });

  it('has to exist', () => {
    given().when({ type: 'ChangeTier', tier: 'pro' }).thenRejected('NOT_FOUND');
    given()
      .when({ type: 'IssueKey', key: key('key_1') })
      .thenRejected('NOT_FOUND');
    given().when({ type: 'RevokeKey', keyId: 'key_1' }).thenRejected('NOT_FOUND');
  });
});

describe('an API key', () => {
  it('is issued and stored as its hash only', () => {
    given(registered)
      .when({ type: 'IssueKey', key: key('key_1') })
      .then(issued('key_1'));
    given(registered, issued('key_1')).stateIs({ keys: [key('key_1')] });
  });

  it('is revoked without effect on other keys', () => {
    const both = [registered, issued('key_1'), issued('key_2')];
    given(...both)
      .when({ type: 'RevokeKey', keyId: 'key_1' })
      .then(revoked('key_1'));
    given(...both, revoked('key_1')).stateIs({ keys: [key('key_2')] });
  });

  it('is not revoked twice', () => {
    given(registered, issued('key_1'), revoked('key_1'))
      .when({ type: 'RevokeKey', keyId: 'key_1' })
      .thenRejected('NOT_FOUND', { key_id: 'key_1' });
  });

  it('is refused beyond an organization’s maximum, until one is revoked', () => {
    const many = Array.from({ length: KEYS_MAX }, (_, index) => issued(`key_${index}`));
    const one = { type: 'IssueKey', key: key('key_more') } as const;
    given(registered, ...many)
      .when(one)
      .thenRejected('INVALID_REQUEST', { max: KEYS_MAX });
    given(registered, ...many, revoked('key_0'))
      .when(one)
      .then(issued('key_more'));
  });
});

describe('the origins of pages that may embed shares', () => {
  const origins = ['https://app.example.com'];
  const allowed = { type: 'organization.origins-allowed', data: { origins } } as const;

  it('are replaced as a whole, and the same ones change nothing', () => {
    given(registered).when({ type: 'AllowOrigins', origins }).then(allowed);
    given(registered, allowed).when({ type: 'AllowOrigins', origins }).thenNothing();
    given(registered, allowed)
      .when({ type: 'AllowOrigins', origins: [] })
      .then({ ...allowed, data: { origins: [] } });
    given(registered).when({ type: 'AllowOrigins', origins: [] }).thenNothing();
  });
});

describe('stopping several sessions', () => {
  const filter = { labels: { team: 'web' } };
  const stop = { type: 'StopSessions', filter, sessions: 2, by: 'ada' } as const;
  const type = 'organization.sessions-stop-requested';

  it('is recorded once for all of them, with the filter, their number and what was said', () => {
    given(registered)
      .when({ ...stop, note: 'deploy' })
      .then({ type, data: { filter, sessions: 2, by: 'ada', note: 'deploy' } });
    given(registered)
      .when(stop)
      .then({ type, data: { filter, sessions: 2, by: 'ada' } });
  });

  it('is not recorded if no session was found', () => {
    given(registered)
      .when({ ...stop, sessions: 0 })
      .thenNothing();
  });

  it('is refused without a restriction', () => {
    for (const nothing of [{}, { labels: {} }])
      given(registered)
        .when({ ...stop, filter: nothing })
        .thenRejected('INVALID_REQUEST', { field: 'filter' });
    for (const one of [{ status: 'queued' }, { userId: 'ada' }, { createdBefore: CREATED }])
      given(registered)
        .when({ ...stop, filter: one })
        .then({ type, data: { filter: one, sessions: 2, by: 'ada' } });
  });

  it('changes nothing of the organization', () => {
    const data = { filter, sessions: 2, by: 'ada' };
    given(registered, { type, data }).stateIs({ id: 'org_acme', name: 'Acme', keys: [] });
  });
});

const CREATED = '2026-11-20T09:30:00.000Z';
