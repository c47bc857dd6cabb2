import type { Change, EventLog } from '#src/event-store/event-store.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import { openLedgers } from '#src/commands/ledger-queue.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
import { sessionRef } from './given-when-then.ts';
import { desk, ledgerRef, newCause } from './watched-event-store.ts';

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
