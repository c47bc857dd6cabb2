import type { Change, EventLog } from '#src/log/event-log.ts';
import { handleSession } from '#src/log/handle-session.ts';
import { openLedgers } from '#src/log/ledger-line.ts';
import type { SessionCommand } from '#src/session/commands.ts';
import { sessionRef } from '../dsl.ts';
import { desk, ledgerRef, newCause } from './watched-log.ts';

/** A desk whose moves of a ledger stand in line. */
export function inLine(log: EventLog) {
  return { ...desk(log), ledgers: openLedgers(desk(log)) };
}

/** A command of one of the organization’s sessions, by way of that line. */
export function ask(
  line: ReturnType<typeof inLine>,
  id: string,
  command: SessionCommand,
  limits = { concurrentSessions: 1_000 },
) {
  return handleSession(
    line,
    { organizationId: sessionRef.organizationId, id },
    command,
    newCause(),
    limits,
  );
}

export async function ledgerOf(log: EventLog) {
  return (await log.last<'ledger'>(ledgerRef))?.state;
}

/** Of an append, the changes that are no ledger’s. */
export function sessionsOf(changes: readonly Change[]): Change[] {
  return changes.filter(({ aggregate }) => aggregate.kind === 'session');
}
