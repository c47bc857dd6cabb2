import { filters, filtersFor } from '#events/subjects.ts';
import { createLedgerAudit, type LedgerAudit } from '#src/billing/ledger-audit.ts';
import { isRejection } from '#src/errors.ts';
import type { Command, Output } from '../../command.ts';
import { parseId } from '../../arguments.ts';
import { formatTable, printable } from '../../output.ts';
import { findOrganization } from '../../organization.ts';
import { readEvents } from '../../read-events.ts';

export const auditLedger: Command = {
  read(options) {
    const organizationId = options.optional('org', parseId);
    return async ({ context, warn }) => {
      const organization =
        organizationId === null ? null : await findOrganization(context.eventStore, organizationId);
      if (organization !== null && isRejection(organization)) return organization;
      const audit = createLedgerAudit();
      const upTo = await context.eventStore.lastSequence();
      const subjects =
        organizationId === null ? filters.ledgersAndSessions : filtersFor(organizationId, null);
      for await (const event of readEvents(context.eventStore, subjects, warn, { upTo }))
        audit.take(event);
      return present(audit.report(), upTo);
    };
  },
};

function present(audits: readonly LedgerAudit[], upTo: number): Output {
  const differs = audits.some(({ differences }) => differences.length > 0);
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
  const json = { agrees: !differs, up_to: upTo, organizations };
  return { json, text: describe(json).join('\n'), differs };
}

type Presented = { agrees: boolean; up_to: number; organizations: readonly Row[] };
type Row = { organization_id: string; agrees: boolean; differences: readonly string[] } & Record<
  (typeof columns)[number],
  number
>;
const columns = [
  'sessions',
  'open',
  'slots_in_use',
  'credits_granted',
  'credits_available',
  'credits_reserved',
  'credits_used',
] as const;

function describe({ agrees, up_to, organizations }: Presented): string[] {
  const heads = [
    'ORGANIZATION',
    ...columns.map((name) => name.replace('_', ' ').toUpperCase()),
    '',
  ];
  const rows = organizations.map((row) => [
    row.organization_id,
    ...columns.map((name) => String(row[name])),
    row.agrees ? 'agrees' : 'DIFFERS',
  ]);
  const differences = organizations.flatMap((row) =>
    row.differences.map((text) => printable(`  ${row.organization_id}: ${text}`)),
  );
  const verdict = agrees ? 'ledgers and sessions agree' : 'ledgers and sessions differ';
  return [...formatTable(heads, rows), ...differences, `Up to event ${up_to}: ${verdict}.`];
}
