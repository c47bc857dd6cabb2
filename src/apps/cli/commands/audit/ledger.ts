import { isRejection } from '#src/kernel/errors.ts';
import { auditLedgers, type LedgerReport } from '#src/commands/operator/audit-ledgers.ts';
import type { Command } from '../../command.ts';
import { parseId } from '../../arguments.ts';
import { formatTable, printable } from '../../output.ts';
import { findOrganization } from '../../organization.ts';

export const auditLedger: Command = {
  read(options) {
    const organizationId = options.optional('org', parseId);
    return async ({ context, warn }) => {
      const organization =
        organizationId === null ? null : await findOrganization(context.eventStore, organizationId);
      if (organization !== null && isRejection(organization)) return organization;
      const report = await auditLedgers(context.eventStore, { organizationId, warn });
      return { json: report, text: describe(report).join('\n'), differs: !report.agrees };
    };
  },
};

const columns = [
  'sessions',
  'open',
  'slots_in_use',
  'credits_granted',
  'credits_available',
  'credits_reserved',
  'credits_used',
] as const;

function describe({ agrees, up_to, organizations }: LedgerReport): string[] {
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
