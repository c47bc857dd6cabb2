import type { Cause } from '#events/envelope.ts';
import type { Tier } from '#events/organization.ts';
import { isOrganizationId } from '#events/subjects.ts';
import { isRejected, reject, type Rejected } from '#src/errors.ts';
import { decideLedger, emptyLedger } from '#src/domain/organization/ledger.ts';
import { decideOrganization } from '#src/domain/organization/organization.ts';
import {
  decideStartKey,
  readKeyHistory,
  type StartKey,
} from '#src/domain/organization/start-key.ts';
import { transact, type Desk, type Handled } from './handle-command.ts';

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
 * Sees to it that the organization exists and that this key opens it: at every start, so a key that
 * was changed by its owner takes the old one's place. A key that was revoked is not issued again.
 * @returns whether it opens the organization now, or was revoked; Rejected where there is no place
 * for a further key
 */
export async function ensureOrganization(
  desk: Desk,
  asked: { id: string; name: string; tier: Tier; credits: number },
  key: StartKey,
  cause: () => Cause,
): Promise<'open' | 'revoked' | Rejected> {
  // Refused where it exists, which is as good.
  await registerOrganization(desk, asked, cause());
  const organization = { kind: 'organization', organizationId: asked.id } as const;
  const issuing = cause();
  let outcome: 'open' | 'revoked' = 'open';
  const handled = await transact<'organization'>(desk, organization, issuing, async ({ read }) => {
    const { state } = await read<'organization'>(organization);
    // Read after the state: what a revocation between them changes, the append's guard refuses.
    const history = await Array.fromAsync(desk.log.history<'organization'>(organization));
    const keys = readKeyHistory(history, key, issuing.actor);
    outcome = keys.revoked.has(key.hash) ? 'revoked' : 'open';
    const events = decideStartKey(key, state, keys);
    if (isRejected(events)) return events;
    return events.length === 0 ? [] : [{ aggregate: organization, events }];
  });
  return isRejected(handled) ? handled : outcome;
}
