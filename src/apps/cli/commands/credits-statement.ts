import type { EgressTotals } from '#events/egress.ts';
import { isOf, type RecordedEvent } from '#events/events.ts';
import { filtersFor } from '#events/subjects.ts';
import { isRejection } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { spanOf, type Span } from '#src/kernel/billing/usage.ts';
import { addTotals, noEgress } from '#src/kernel/domain/egress/traffic.ts';
import { emptyLedger } from '#src/kernel/domain/organization/ledger.ts';
import type { Command, CommandSession, Output } from '../command.ts';
import { parseId, parseTimeOrDate } from '../arguments.ts';
import { formatTable, printable } from '../output.ts';
import { findOrganization } from '../organization.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';
import { compareWithSessions, openStatement, type Statement } from './statement.ts';

export const showStatement: Command = {
  read(options) {
    const organizationId = options.required('org', parseId);
    const [from, to] = [
      options.optional('from', parseTimeOrDate),
      options.optional('to', parseTimeOrDate),
    ];
    return async ({ context, warn }) => {
      const organization = await findOrganization(context.eventStore, organizationId);
      if (isRejection(organization)) return organization;
      const span = await spanOf(context.eventStore, from, to);
      const statement = await readStatement(context.eventStore, organizationId, span, warn);
      const differences = [
        ...compareWithSessions(statement, span),
        ...(await compareWithStates(context.eventStore, organizationId, span, statement)),
      ];
      return present({ organizationId, from, to, statement, differences });
    };
  },
};

/** Reads all events of the organization's ledger and sessions; keeps what the span needs. */
async function readStatement(
  eventStore: EventStore,
  organizationId: string,
  span: Span,
  warn: CommandSession['warn'],
): Promise<Statement> {
  const statement = openStatement(span);
  const subjects = filtersFor(organizationId, null);
  // Read to the end of the store: a session is settled right after the event that ends it.
  for await (const event of readEvents(eventStore, subjects, warn)) take(statement, event);
  return statement.close();
}

function take(statement: ReturnType<typeof openStatement>, event: RecordedEvent): void {
  if (isOf('ledger', event)) statement.takeLine(event);
  else if (isOf('session', event)) statement.takeSession(event);
}

/** Compares the balances with the states stored in the ledger's events, which the API presents. */
async function compareWithStates(
  eventStore: EventStore,
  organizationId: string,
  { after, upTo }: Span,
  { opening, closing }: Statement,
): Promise<string[]> {
  const ledger = { kind: 'ledger', organizationId } as const;
  const at = async (sequence: number) =>
    (await loadState<'ledger'>(eventStore, ledger, { upTo: sequence })).state ?? emptyLedger;
  const [begin, end] = [await at(after), await at(upTo)];
  return [
    ['opening', begin.creditsAvailable + begin.creditsReserved, opening],
    ['closing', end.creditsAvailable + end.creditsReserved, closing],
  ].flatMap(([which, carried, folded]) =>
    carried === folded
      ? []
      : [`the ${which} balance is ${folded}, but ${carried} in the stored state of the ledger`],
  );
}

type Presented = {
  organizationId: string;
  from: number | null;
  to: number | null;
  statement: Statement;
  differences: readonly string[];
};

function present({ organizationId, from, to, statement, differences }: Presented): Output {
  const { opening, closing, granted, grants, lines } = statement;
  const credits = lines.reduce((sum, { creditsUsed }) => sum + creditsUsed, 0);
  const egress = lines.reduce((sum, line) => addTotals(sum, line.egress ?? noEgress), noEgress);
  const json = {
    organization_id: organizationId,
    from: isoOf(from),
    to: isoOf(to),
    opening_balance: opening,
    granted,
    sessions: lines.length,
    minutes: credits,
    credits_used: credits,
    egress: presentEgress(egress),
    closing_balance: closing,
    grants,
    lines: lines.map((line) => ({
      session_id: line.sessionId,
      settled_at: line.settledAt,
      minutes: line.creditsUsed,
      credits_used: line.creditsUsed,
      credits_refunded: line.creditsRefunded,
      egress: line.egress === null ? null : presentEgress(line.egress),
      events: line.events,
    })),
    agrees: differences.length === 0,
    differences,
  };
  const rows = json.lines.map((line) => [
    line.settled_at,
    line.session_id,
    String(line.minutes),
    String(line.credits_used),
    String(line.credits_refunded),
    line.events.map(({ sequence }) => sequence).join(' '),
  ]);
  const text = [
    ...formatTable(['SETTLED', 'SESSION', 'MINUTES', 'CREDITS', 'RETURNED', 'EVENTS'], rows),
    `Balance ${opening}, granted ${granted}, ` +
      `used ${credits} by ${lines.length} sessions: ${closing}.`,
    `Egress by rules: ${egress.bytesSent} bytes sent, ${egress.bytesReceived} received, ` +
      `${egress.refused} refused.`,
    ...differences.map(printable),
    differences.length === 0
      ? 'Derived from the sessions: the same.'
      : 'Derived from the sessions: DIFFERENT.',
  ];
  return { json, text: text.join('\n'), differs: differences.length > 0 };
}

function presentEgress({ bytesSent, bytesReceived, refused }: EgressTotals) {
  return { bytes_sent: bytesSent, bytes_received: bytesReceived, refused };
}

function isoOf(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
