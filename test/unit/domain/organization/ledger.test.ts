import { describe, expect, it } from 'vitest';
import type { EgressTotals } from '#events/egress.ts';
import type { LedgerEvent } from '#events/ledger.ts';
import { ledgerCommandFor } from '#src/kernel/domain/organization/ledger.ts';
import { ledger } from '#test/support/given-when-then.ts';
import {
  accessed,
  activated,
  assigned,
  extended,
  failed,
  HOUR,
  queued,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = ledger;

function granted(credits: number): LedgerEvent {
  return { type: 'ledger.credits-granted', data: { credits } };
}
function slot(sessionId: string, credits: number): LedgerEvent {
  return { type: 'ledger.slot-reserved', data: { sessionId, credits } };
}
function released(sessionId: string, creditsUsed: number, creditsRefunded: number): LedgerEvent {
  return { type: 'ledger.slot-released', data: { sessionId, creditsUsed, creditsRefunded } };
}
/** The end of a session with egress rules. */
function releasedWith(sessionId: string, egress: EgressTotals): LedgerEvent {
  const data = { sessionId, creditsUsed: 1, creditsRefunded: 0, egress };
  return { type: 'ledger.slot-released', data };
}
function reserve(sessionId: string, credits: number, concurrentSessions = 5) {
  return { type: 'ReserveSlot', sessionId, credits, concurrentSessions } as const;
}

describe('a slot', () => {
  it('is taken with its credits', () => {
    given(granted(600)).when(reserve('ses_1', 120)).then(slot('ses_1', 120));
    given(granted(600), slot('ses_1', 120)).stateIs({
      slotsInUse: 1,
      creditsGranted: 600,
      creditsAvailable: 480,
      creditsReserved: 120,
      creditsUsed: 0,
    });
  });

  it('is granted up to the limit', () => {
    given(granted(600), slot('ses_1', 1))
      .when(reserve('ses_2', 1, 2))
      .then(slot('ses_2', 1));
  });

  it('is refused beyond the limit', () => {
    given(granted(600), slot('ses_1', 1), slot('ses_2', 1))
      .when(reserve('ses_3', 1, 2))
      .thenRejected('SESSION_LIMIT_EXCEEDED', { limit: 2 });
  });

  it('is free again after the end', () => {
    given(granted(600), slot('ses_1', 1), released('ses_1', 1, 0))
      .when(reserve('ses_2', 1, 1))
      .then(slot('ses_2', 1));
  });

  it('is refused if the limit was lowered below the slots in use', () => {
    given(granted(600), slot('ses_1', 1), slot('ses_2', 1))
      .when(reserve('ses_3', 1, 1))
      .thenRejected('SESSION_LIMIT_EXCEEDED', { limit: 1 });
  });

  it('is refused for lack of slots before lack of credits', () => {
    given()
      .when(reserve('ses_1', 1, 0))
      .thenRejected('SESSION_LIMIT_EXCEEDED');
  });
});

describe('credits', () => {
  it('can be reserved to the last one', () => {
    given(granted(120)).when(reserve('ses_1', 120)).then(slot('ses_1', 120));
  });

  it('are refused beyond what is available', () => {
    given(granted(119))
      .when(reserve('ses_1', 120))
      .thenRejected('INSUFFICIENT_CREDITS', { required: 120, available: 119 });
  });

  it('are refused to an organization that was never granted any', () => {
    given()
      .when(reserve('ses_1', 1))
      .thenRejected('INSUFFICIENT_CREDITS', { required: 1, available: 0 });
  });

  it('are reserved in addition for an extension, without a slot', () => {
    const more = { sessionId: 'ses_1', credits: 60 };
    const line: LedgerEvent = { type: 'ledger.credits-reserved', data: more };
    given(granted(600), slot('ses_1', 120))
      .when({ type: 'ReserveCredits', ...more })
      .then(line);
    given(granted(600), slot('ses_1', 120), line).stateIs({
      slotsInUse: 1,
      creditsAvailable: 420,
      creditsReserved: 180,
    });
  });

  it('that are insufficient reject an extension', () => {
    given(granted(130), slot('ses_1', 120))
      .when({ type: 'ReserveCredits', sessionId: 'ses_1', credits: 11 })
      .thenRejected('INSUFFICIENT_CREDITS', { required: 11, available: 10 });
  });

  it('that were not used are refunded at the end', () => {
    given(granted(600), slot('ses_1', 120), released('ses_1', 7, 113)).stateIs({
      slotsInUse: 0,
      creditsAvailable: 593,
      creditsReserved: 0,
      creditsUsed: 7,
    });
  });

  it('that are granted add to the available ones', () => {
    given(granted(5)).when({ type: 'GrantCredits', credits: 7 }).then(granted(7));
    given(granted(5), granted(7)).stateIs({ creditsGranted: 12, creditsAvailable: 12 });
  });
});

describe('the traffic of sessions with egress rules', () => {
  const traffic = { bytesSent: 4_100, bytesReceived: 91_000, refused: 2 };

  it('is added up as they end', () => {
    const first = [slot('ses_1', 1), releasedWith('ses_1', traffic)];
    const second = [slot('ses_2', 1), releasedWith('ses_2', { ...traffic, refused: 0 })];
    given(granted(9), ...first).stateIs({ egress: traffic });
    given(granted(9), ...first, ...second).stateIs({
      egress: { bytesSent: 8_200, bytesReceived: 182_000, refused: 2 },
    });
  });

  it('stays as it is where a session has none', () => {
    const without = [slot('ses_2', 1), released('ses_2', 1, 0)];
    const before = [granted(9), slot('ses_1', 1), releasedWith('ses_1', traffic)];
    given(...before, ...without).stateIs({ sessionsEnded: 2, egress: traffic });
  });
});

describe("a session's event", () => {
  const limits = { concurrentSessions: 5 };

  it('makes the ledger reserve a slot, reserve credits, or release both', () => {
    expect(ledgerCommandFor(requested(), 'ses_1', limits)).toEqual(reserve('ses_1', 120));
    expect(ledgerCommandFor(extended(HOUR, T0 + 3 * HOUR), 'ses_1', limits)).toEqual({
      type: 'ReserveCredits',
      sessionId: 'ses_1',
      credits: 60,
    });
    const release = { type: 'ReleaseSlot', sessionId: 'ses_1' };
    const end = ledgerCommandFor(stopped(T0, 7), 'ses_1', limits);
    expect(end).toEqual({ ...release, creditsUsed: 7, creditsRefunded: 113 });
    const egress = { bytesSent: 1, bytesReceived: 2, refused: 3 };
    expect(ledgerCommandFor(failed({ egress }), 'ses_1', limits)).toEqual({
      ...release,
      egress,
      creditsUsed: 0,
      creditsRefunded: 120,
    });
  });

  it('of another type leaves the ledger unchanged', () => {
    const others = [queued, assigned(), activated(), accessed(T0), stopRequested()];
    expect(others.map((event) => ledgerCommandFor(event, 'ses_1', limits))).toEqual(
      others.map(() => null),
    );
  });
});
