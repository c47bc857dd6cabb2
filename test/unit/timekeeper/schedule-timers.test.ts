import { expect, it } from 'vitest';
import type { SessionEvent } from '#events/session.ts';
import { timersOf, upcomingTimersOf } from '#src/roles/timekeeper/schedule-timers.ts';
import { foldAll, sessionRef } from '#test/support/given-when-then.ts';
import { activated, handedOff, HOUR, MINUTE, requested, T0 } from '#test/support/examples.ts';

const queue = { afterMs: 30_000, timeoutMs: 5 * MINUTE };
const [asked, taken, completed] = handedOff;

function stateOf(...events: SessionEvent[]) {
  const state = foldAll<'session'>(sessionRef, null, [requested(), activated(), ...events]);
  if (state === null) throw new Error('no session');
  return state;
}

it('a hand-off has a timer for its end until it is over', () => {
  const expiry = { kind: 'expiry', at: T0 + 2 * HOUR };
  const handoff = { kind: 'handoff', at: T0 + 16 * MINUTE };
  expect(timersOf(stateOf(), queue)).toEqual([expiry]);
  for (const open of [[asked], [asked, taken]])
    expect(timersOf(stateOf(...open), queue)).toEqual([expiry, handoff]);
  expect(timersOf(stateOf(asked, taken, completed), queue)).toEqual([expiry]);
  expect(upcomingTimersOf(stateOf(asked), queue, T0 + 15 * MINUTE)).toContainEqual(handoff);
});
