import type { EgressTotals } from '#events/egress.ts';
import type { LedgerEvent, LedgerState } from '#events/ledger.ts';
import type { SessionEvent } from '#events/session.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { addTotals, noEgress } from '../egress/traffic.ts';

export const emptyLedger: LedgerState = {
  slotsInUse: 0,
  sessionsEnded: 0,
  creditsGranted: 0,
  creditsAvailable: 0,
  creditsReserved: 0,
  creditsUsed: 0,
};

/** Changes of an organization's slots and credits. */
export type LedgerCommand =
  | { type: 'GrantCredits'; credits: number }
  | { type: 'ReserveSlot'; sessionId: string; credits: number; concurrentSessions: number }
  | { type: 'ReserveCredits'; sessionId: string; credits: number }
  | {
      type: 'ReleaseSlot';
      sessionId: string;
      creditsUsed: number;
      creditsRefunded: number;
      egress?: EgressTotals;
    };

/** The ledger command that a session's event requires in the same batch; null: none. */
export function ledgerCommandFor(
  event: SessionEvent,
  sessionId: string,
  limits: { concurrentSessions: number },
): LedgerCommand | null {
  switch (event.type) {
    case 'session.requested':
      return {
        type: 'ReserveSlot',
        sessionId,
        credits: event.data.creditsReserved,
        concurrentSessions: limits.concurrentSessions,
      };
    case 'session.extended':
      return { type: 'ReserveCredits', sessionId, credits: event.data.creditsReserved };
    case 'session.stopped':
    case 'session.failed': {
      const { creditsUsed, creditsRefunded, egress } = event.data;
      const traffic = egress === undefined ? {} : { egress };
      return { type: 'ReleaseSlot', sessionId, creditsUsed, creditsRefunded, ...traffic };
    }
    default:
      return null;
  }
}

/** The ledger's event for a command, or a rejection. */
export function decideLedger(
  command: LedgerCommand,
  ledger: LedgerState,
): LedgerEvent[] | Rejection {
  switch (command.type) {
    case 'GrantCredits':
      return [{ type: 'ledger.credits-granted', data: { credits: command.credits } }];
    case 'ReserveSlot': {
      const { sessionId, credits, concurrentSessions } = command;
      if (ledger.slotsInUse >= concurrentSessions)
        return reject('SESSION_LIMIT_EXCEEDED', { limit: concurrentSessions });
      return (
        insufficient(credits, ledger) ?? [
          { type: 'ledger.slot-reserved', data: { sessionId, credits } },
        ]
      );
    }
    case 'ReserveCredits': {
      const { sessionId, credits } = command;
      return (
        insufficient(credits, ledger) ?? [
          { type: 'ledger.credits-reserved', data: { sessionId, credits } },
        ]
      );
    }
    case 'ReleaseSlot': {
      const { type: _, ...data } = command;
      return [{ type: 'ledger.slot-released', data }];
    }
  }
}

function insufficient(required: number, ledger: LedgerState): Rejection | null {
  const available = ledger.creditsAvailable;
  return required > available ? reject('INSUFFICIENT_CREDITS', { required, available }) : null;
}

/**
 * The ledger after an event. Granted = available + reserved + used holds before and after.
 * @throws RangeError for a `carried-forward` without the lines that it carries the sum of
 */
export function evolveLedger(ledger: LedgerState | null, event: LedgerEvent): LedgerState {
  const before = ledger ?? emptyLedger;
  switch (event.type) {
    case 'ledger.credits-granted':
      return {
        ...before,
        creditsGranted: before.creditsGranted + event.data.credits,
        creditsAvailable: before.creditsAvailable + event.data.credits,
      };
    case 'ledger.slot-reserved':
      return { ...reserve(before, event.data.credits), slotsInUse: before.slotsInUse + 1 };
    case 'ledger.credits-reserved':
      return reserve(before, event.data.credits);
    case 'ledger.slot-released': {
      const { creditsUsed, creditsRefunded, egress } = event.data;
      const sum = before.egress ?? noEgress;
      return {
        ...before,
        slotsInUse: before.slotsInUse - 1,
        sessionsEnded: before.sessionsEnded + 1,
        creditsAvailable: before.creditsAvailable + creditsRefunded,
        creditsReserved: before.creditsReserved - creditsUsed - creditsRefunded,
        creditsUsed: before.creditsUsed + creditsUsed,
        ...(egress === undefined ? {} : { egress: addTotals(sum, egress) }),
      };
    }
    case 'ledger.carried-forward':
      if (ledger === null)
        throw new RangeError(`${event.type} before any line: the history is incomplete`);
      return ledger;
  }
}

function reserve(ledger: LedgerState, credits: number): LedgerState {
  return {
    ...ledger,
    creditsAvailable: ledger.creditsAvailable - credits,
    creditsReserved: ledger.creditsReserved + credits,
  };
}
