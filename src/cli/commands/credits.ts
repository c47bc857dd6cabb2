import type { LedgerState } from '#events/ledger.ts';
import { layOut } from '../output.ts';
import type { Output } from '../command.ts';

/** The most one command gives: beyond any use, and far from where sums lose their last digits. */
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
  return { json, text: layOut(heads, [Object.values(json).map(String)]).join('\n') };
}
