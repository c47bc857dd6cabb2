import type { Cause } from '#events/envelope.ts';
import type { ApiKey, Tier } from '#events/organization.ts';
import { isOrganizationId } from '#events/subjects.ts';
import { isRejected, reject, type Rejected } from '../errors.ts';
import { decideLedger, emptyLedger } from '../organization/ledger.ts';
import { decideOrganization } from '../organization/organization.ts';
import { handle, transact, type Desk, type Handled } from './handle.ts';

/** An organization and its first credits, in one batch; not where the id is taken or reserved. */
export async function registerOrganization(
  desk: Desk,
  asked: { id: string; name: string; tier: Tier; credits: number },
  cause: Cause,
): Promise<Handled<'organization'> | Rejected> {
  const { id: organizationId, name, tier, credits } = asked;
  if (!isOrganizationId(organizationId))
    return reject('INVALID_REQUEST', { id: organizationId }, { message: 'No such id may be had.' });
  const organization = { kind: 'organization', organizationId } as const;
  const ledger = { kind: 'ledger', organizationId } as const;
  return transact<'organization'>(desk, organization, cause, async ({ read }) => {
    const { state } = await read<'organization'>(organization);
    const events = decideOrganization({ type: 'RegisterOrganization', name, tier }, state);
    if (isRejected(events)) return events;
    const { state: balance } = await read<'ledger'>(ledger);
    const grant = decideLedger({ type: 'GrantCredits', credits }, balance ?? emptyLedger);
    if (isRejected(grant)) return grant;
    return [
      { aggregate: organization, events },
      { aggregate: ledger, events: credits === 0 ? [] : grant },
    ];
  });
}

/**
 * Sees to it that the organization exists and that exactly this key opens it under the key's id: at
 * every start, so a key that was changed by its owner takes the old one's place.
 */
export async function ensureOrganization(
  desk: Desk,
  asked: { id: string; name: string; tier: Tier; credits: number },
  key: ApiKey,
  cause: () => Cause,
): Promise<void> {
  // Refused where it exists, which is as good.
  await registerOrganization(desk, asked, cause());
  const organization = { kind: 'organization', organizationId: asked.id } as const;
  await handle<'organization'>(
    desk,
    organization,
    (state) => {
      const known = state?.keys.find(({ keyId }) => keyId === key.keyId);
      if (known?.hash === key.hash) return [];
      const issue = decideOrganization({ type: 'IssueKey', key }, state);
      if (known === undefined || isRejected(issue)) return issue;
      const revoke = decideOrganization({ type: 'RevokeKey', keyId: key.keyId }, state);
      return isRejected(revoke) ? revoke : [...revoke, ...issue];
    },
    cause(),
  );
}
