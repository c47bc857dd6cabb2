import type { EventMetadata } from '#events/envelope.ts';
import type { Tier } from '#events/organization.ts';
import { isOrganizationId } from '#events/subjects.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { decideLedger, emptyLedger } from '#src/kernel/domain/organization/ledger.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import {
  decideStartKey,
  readKeyHistory,
  type StartKey,
} from '#src/kernel/domain/organization/start-key.ts';
import { handleTransaction, type CommandContext, type CommandResult } from './handle-command.ts';

/**
 * Registers an organization and grants its first credits in one batch; rejected if the id is taken
 * or reserved.
 */
export async function registerOrganization(
  context: CommandContext,
  asked: { id: string; name: string; tier: Tier; credits: number },
  metadata: EventMetadata,
): Promise<CommandResult<'organization'> | Rejection> {
  const { id: organizationId, name, tier, credits } = asked;
  if (!isOrganizationId(organizationId))
    return reject('INVALID_REQUEST', { id: organizationId }, { message: 'No such id may be had.' });
  const organization = { kind: 'organization', organizationId } as const;
  const ledger = { kind: 'ledger', organizationId } as const;
  return handleTransaction<'organization'>(context, organization, metadata, async ({ read }) => {
    const { state } = await read<'organization'>(organization);
    const events = decideOrganization({ type: 'RegisterOrganization', name, tier }, state);
    if (isRejection(events)) return events;
    const { state: balance } = await read<'ledger'>(ledger);
    const grant = decideLedger({ type: 'GrantCredits', credits }, balance ?? emptyLedger);
    if (isRejection(grant)) return grant;
    return [
      { aggregate: organization, events },
      { aggregate: ledger, events: credits === 0 ? [] : grant },
    ];
  });
}

/**
 * Ensures that the organization exists and that this key is valid for it. Called at every start: if
 * the configured key has changed, the new key replaces the old one. A revoked key is not issued
 * again.
 * @returns whether the key is valid now, or was revoked; Rejected if the organization has no room
 * for a further key
 */
export async function ensureOrganization(
  context: CommandContext,
  asked: { id: string; name: string; tier: Tier; credits: number },
  key: StartKey,
  cause: () => EventMetadata,
): Promise<'open' | 'revoked' | Rejection> {
  // A rejection because the organization exists is as good as success.
  await registerOrganization(context, asked, cause());
  const organization = { kind: 'organization', organizationId: asked.id } as const;
  const issuing = cause();
  let outcome: 'open' | 'revoked' = 'open';
  const handled = await handleTransaction<'organization'>(
    context,
    organization,
    issuing,
    async ({ read }) => {
      const { state } = await read<'organization'>(organization);
      // The history is read after the state. If a key is revoked between the two reads, the append
      // fails its check.
      const history = await Array.fromAsync(
        context.eventStore.history<'organization'>(organization),
      );
      const keys = readKeyHistory(history, key, issuing.actor);
      outcome = keys.revoked.has(key.hash) ? 'revoked' : 'open';
      const events = decideStartKey(key, state, keys);
      if (isRejection(events)) return events;
      return events.length === 0 ? [] : [{ aggregate: organization, events }];
    },
  );
  return isRejection(handled) ? handled : outcome;
}
