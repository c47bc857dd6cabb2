import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '#events/session.ts';
import { evolveBill, type Bill } from '#src/kernel/billing/bill.ts';
import {
  assigned,
  requested,
  requeued,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

function billOf(...events: SessionEvent[]): Bill | null {
  return events.reduce<Bill | null>((bill, event) => evolveBill(bill, event), null);
}

describe('the bill of a session that was stopped before it was active', () => {
  const end = (creditsUsed: number) => [stopRequested('user', T0), stopped(T0, creditsUsed)];

  test('has one credit if a browser was being launched for it', () => {
    expect(billOf(requested(), assigned(), ...end(1))).toMatchObject({ creditsUsed: 1 });
  });

  test('has none if it still waited, whatever its event says', () => {
    expect(billOf(requested(), ...end(1))).toMatchObject({ creditsUsed: 0 });
    expect(billOf(requested(), assigned(), requeued, ...end(1))).toMatchObject({ creditsUsed: 0 });
  });

  test('has at most one, and none if it ended before launches were charged', () => {
    expect(billOf(requested(), assigned(), ...end(5))).toMatchObject({ creditsUsed: 1 });
    expect(billOf(requested(), assigned(), ...end(0))).toMatchObject({ creditsUsed: 0 });
  });
});
