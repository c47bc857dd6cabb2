import { isOf, type RecordedEvent } from '#events/events.ts';
import { filtersFor } from '#events/subjects.ts';
import { isRejected } from '#src/errors.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { loadAt } from '../../log/past.ts';
import { spanOf, type Span } from '#src/billing/usage.ts';
import { emptyLedger } from '#src/domain/organization/ledger.ts';
import type { Command, CommandSession, Output } from '../command.ts';
import { asId, asTimeOrDate } from '../arguments.ts';
import { layOut, printable } from '../output.ts';
import { findOrganization } from '../organization.ts';
import { readEvents } from '../read-events.ts';
import { compareWithSessions, openStatement, type Statement } from './statement.ts';

export const statementOfCredits: Command = {
  name: 'credits statement',
  summary: "Show what an organization's credits went for, and derive it again from its sessions",
  options: {
    org: { value: 'ID', meaning: 'the organization' },
    from: { value: 'TIME', meaning: 'RFC 3339 or a date in UTC; default: from the first event on' },
    to: { value: 'TIME', meaning: 'up to there, not included; default: now' },
  },
  read(given) {
    const organizationId = given.required('org', asId);
    const [from, to] = [given.optional('from', asTimeOrDate), given.optional('to', asTimeOrDate)];
    return async ({ desk, warn }) => {
      const organization = await findOrganization(desk.log, organizationId);
      if (isRejected(organization)) return organization;
      const span = await spanOf(desk.log, from, to);
      const statement = await readStatement(desk.log, organizationId, span, warn);
      const differences = [
        ...compareWithSessions(statement, span),
        ...(await compareWithStates(desk.log, organizationId, span, statement)),
      ];
      return present({ organizationId, from, to, statement, differences });
    };
  },
};

/** All that the organization's ledger and sessions recorded, kept as far as the span needs it. */
async function readStatement(
  log: EventLog,
  organizationId: string,
  span: Span,
  warn: CommandSession['warn'],
): Promise<Statement> {
  const statement = openStatement(span);
  const subjects = filtersFor(organizationId, null);
  // To the log's end: what settles a session may stand right behind what ends it.
  for await (const event of readEvents(log, subjects, warn)) take(statement, event);
  return statement.close();
}

function take(statement: ReturnType<typeof openStatement>, event: RecordedEvent): void {
  if (isOf('ledger', event)) statement.takeLine(event);
  else if (isOf('session', event)) statement.takeSession(event);
}

/** What the ledger's own states say of the span: by them the API tells its totals. */
async function compareWithStates(
  log: EventLog,
  organizationId: string,
  { after, upTo }: Span,
  { opening, closing }: Statement,
): Promise<string[]> {
  const ledger = { kind: 'ledger', organizationId } as const;
  const at = async (sequence: number) =>
    (await loadAt<'ledger'>(log, ledger, sequence)).state ?? emptyLedger;
  const [begin, end] = [await at(after), await at(upTo)];
  return [
    ['opening', begin.creditsAvailable + begin.creditsReserved, opening],
    ['closing', end.creditsAvailable + end.creditsReserved, closing],
  ].flatMap(([which, carried, folded]) =>
    carried === folded
      ? []
      : [`the ${which} balance is ${folded}, and ${carried} by the state that the log carries`],
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
  const json = {
    organization_id: organizationId,
    from: isoOf(from),
    to: isoOf(to),
    opening_balance: opening,
    granted,
    sessions: lines.length,
    minutes: credits,
    credits_used: credits,
    closing_balance: closing,
    grants,
    lines: lines.map((line) => ({
      session_id: line.sessionId,
      settled_at: line.settledAt,
      minutes: line.creditsUsed,
      credits_used: line.creditsUsed,
      credits_refunded: line.creditsRefunded,
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
    ...layOut(['SETTLED', 'SESSION', 'MINUTES', 'CREDITS', 'RETURNED', 'EVENTS'], rows),
    `Balance ${opening}, granted ${granted}, ` +
      `used ${credits} by ${lines.length} sessions: ${closing}.`,
    ...differences.map(printable),
    differences.length === 0
      ? 'Derived again from the sessions: the same.'
      : 'Derived again from the sessions: it DIFFERS.',
  ];
  return { json, text: text.join('\n'), differs: differences.length > 0 };
}

function isoOf(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
