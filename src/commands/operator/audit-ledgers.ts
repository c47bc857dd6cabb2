import { filters, filtersFor } from '#events/subjects.ts';
import { createLedgerAudit, type LedgerAudit } from '#src/kernel/billing/ledger-audit.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';

/**
 * Compares ledgers with sessions over the whole event store, archive included.
 * @param organizationId null: of all organizations
 * @param warn called for each event that cannot be read
 * @param onProgress called with the sequence of each event
 */
export async function auditLedgers(
  eventStore: EventStore,
  {
    organizationId,
    warn,
    onProgress,
  }: {
    organizationId: string | null;
    warn: (text: string) => void;
    onProgress?: (sequence: number, upTo: number) => void;
  },
) {
  const audit = createLedgerAudit();
  const upTo = await eventStore.lastSequence();
  const subjects =
    organizationId === null ? filters.ledgersAndSessions : filtersFor(organizationId, null);
  for await (const event of readEvents(eventStore, subjects, warn, { upTo })) {
    audit.take(event);
    onProgress?.(event.sequence, upTo);
  }
  return presentLedgers(audit.report(), upTo);
}

function presentLedgers(audits: readonly LedgerAudit[], upTo: number) {
  const organizations = audits.map((audit) => ({
    organization_id: audit.organizationId,
    agrees: audit.differences.length === 0,
    sessions: audit.sessions,
    open: audit.open,
    slots_in_use: audit.ledger.slotsInUse,
    credits_granted: audit.ledger.creditsGranted,
    credits_available: audit.ledger.creditsAvailable,
    credits_reserved: audit.ledger.creditsReserved,
    credits_used: audit.ledger.creditsUsed,
    differences: audit.differences,
  }));
  return { agrees: organizations.every(({ agrees }) => agrees), up_to: upTo, organizations };
}
export type LedgerReport = Awaited<ReturnType<typeof auditLedgers>>;
