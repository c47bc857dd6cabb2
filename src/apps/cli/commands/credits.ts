import type { LedgerState } from '#events/ledger.ts';
import { handleTransaction } from '#src/commands/handle-command.ts';
import { decideLedger, emptyLedger } from '#src/kernel/domain/organization/ledger.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { parseId, integer } from '../arguments.ts';
import type { Command, Output } from '../command.ts';
import { operatorMetadata } from '../operator.ts';
import { organizationNotFound, organizationCommand } from '../organization.ts';
import { formatTable } from '../output.ts';

export const grantCredits: Command = {
  read(options) {
    const organizationId = options.required('org', parseId);
    const credits = options.required('amount', integer(1, creditsMax));
    return async ({ context }) => {
      const ledger = { kind: 'ledger', organizationId } as const;
      const handled = await handleTransaction<'ledger'>(
        context,
        ledger,
        operatorMetadata(),
        async ({ read }) => {
          const organization = { kind: 'organization', organizationId } as const;
          const { state: owner } = await read<'organization'>(organization);
          if (owner === null) return organizationNotFound(organizationId);
          const { state } = await read<'ledger'>(ledger);
          const events = decideLedger({ type: 'GrantCredits', credits }, state ?? emptyLedger);
          return isRejection(events) ? events : [{ aggregate: ledger, events }];
        },
      );
      return isRejection(handled) ? handled : presentLedger(organizationId, handled.state);
    };
  },
};

export const showCredits = organizationCommand(async ({ id }, eventStore) => {
  const ledger = { kind: 'ledger', organizationId: id } as const;
  const { state } = await loadState<'ledger'>(eventStore, ledger, { fromLeader: true });
  return presentLedger(id, state ?? emptyLedger);
});

/** Most credits in one command: far below 2^53, from where sums lose digits. */
export const creditsMax = 1_000_000_000_000;

export function presentLedger(organizationId: string, ledger: LedgerState): Output {
  const { slotsInUse, creditsGranted, creditsAvailable, creditsReserved, creditsUsed } = ledger;
  const json = {
    organization_id: organizationId,
    credits_granted: creditsGranted,
    credits_available: creditsAvailable,
    credits_reserved: creditsReserved,
    credits_used: creditsUsed,
    slots_in_use: slotsInUse,
  };
  const heads = ['ORGANIZATION', 'GRANTED', 'AVAILABLE', 'RESERVED', 'USED', 'SLOTS IN USE'];
  return { json, text: formatTable(heads, [Object.values(json).map(String)]).join('\n') };
}
