import { describe, expect, it } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import { timersAfter, timersOf } from '#src/timekeeper/schedule-timers.ts';
import { rearmAt } from '#src/timekeeper/timer-command.ts';
import { foldAll, session, sessionRef } from '#test/support/given-when-then.ts';
import {
  activated,
  assigned,
  expiryWarning,
  extended,
  HOUR,
  iso,
  MINUTE,
  queued,
  requested,
  requeued,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const END = T0 + 2 * HOUR;
const warn = (now: number) => ({ type: 'WarnOfExpiry', now }) as const;
const queue = { afterMs: 1_000, timeoutMs: 5 * MINUTE };

describe('a session is warned of its end', () => {
  it('a minute before it, and not earlier', () => {
    given(requested(), activated())
      .when(warn(END - MINUTE - 1))
      .thenNothing();
    given(requested(), activated())
      .when(warn(END - MINUTE))
      .then(expiryWarning);
    given(requested(), activated(), expiryWarning).stateIs({ status: 'active' });
  });

  it('and not once it has come, as where its timer fires late', () => {
    given(requested(), activated()).when(warn(END)).thenNothing();
  });

  it('once, and again where an extension has moved it', () => {
    given(requested(), activated(), expiryWarning).when(warn(END)).thenNothing();
    const moved = [requested(), activated(), expiryWarning, extended(HOUR, END + HOUR)];
    given(...moved)
      .when(warn(END))
      .thenNothing();
    given(...moved)
      .when(warn(END + HOUR - MINUTE))
      .then({ type: 'session.expiry-warning', data: { expiresAt: iso(END + HOUR) } });
  });

  it('only while it is active', () => {
    given(requested()).when(warn(END)).thenNothing();
    given(requested(), activated(), stopRequested()).when(warn(END)).thenNothing();
  });

  it('by a timer that is set when it starts and moves when it is extended', () => {
    const at = (kind: string, ...events: Parameters<typeof given>) =>
      timersAfter(recorded(...events), queue).flatMap((step) =>
        step !== 'cancel-all' && step.kind === kind ? [step.at] : [],
      );
    expect(at('expiry-warning', requested())).toEqual([]);
    expect(at('expiry-warning', requested(), activated())).toEqual([END - MINUTE]);
    const moved = extended(HOUR, END + HOUR);
    expect(at('expiry-warning', requested(), activated(), moved)).toEqual([END + HOUR - MINUTE]);
    // One that is given back may have outlived its time in the queue while it was launched.
    const back = [requested(), assigned(), requeued] as const;
    expect(at('queue-timeout', ...back)).toEqual([T0 + queue.timeoutMs]);
  });

  it('by a timer that is set again where it fired too early, and no more once it is told', () => {
    const rearm = (...events: Parameters<typeof given>) => {
      const state = foldAll<'session'>(sessionRef, null, events);
      return state === null ? null : rearmAt('expiry-warning', state, T0);
    };
    expect(rearm(requested(), activated())).toBe(END - MINUTE);
    expect(rearm(requested(), activated(), expiryWarning)).toBeNull();
    expect(rearm(requested(), activated(), stopRequested())).toBeNull();
  });
});

describe('what a session waits for, by its state alone', () => {
  function waitsFor(...events: Parameters<typeof given>): Record<string, number> {
    const state = foldAll<'session'>(sessionRef, null, events);
    if (state === null) throw new Error('no session');
    return Object.fromEntries(timersOf(state, queue).map(({ kind, at }) => [kind, at]));
  }

  it('is its end, and its turn where no server has taken it', () => {
    const inQueue = { expiry: END, 'queue-timeout': T0 + queue.timeoutMs };
    expect(waitsFor(requested())).toEqual({ ...inQueue, 'queue-after': T0 + queue.afterMs });
    expect(waitsFor(requested(), queued)).toEqual(inQueue);
    expect(waitsFor(requested(), assigned(), requeued)).toEqual(inQueue);
    expect(waitsFor(requested(), assigned())).toEqual({ expiry: END });
  });

  it('is, while it is active, its idle end; a late warning would be none', () => {
    const idle = requested({ idleTimeoutMs: 5 * MINUTE });
    expect(waitsFor(requested(), activated())).toEqual({ expiry: END });
    // With the minute by which its use is known.
    expect(waitsFor(idle, activated())).toEqual({ expiry: END, idle: T0 + 6 * MINUTE });
  });

  it('is nothing once it is to end', () => {
    expect(waitsFor(requested(), activated(), stopRequested())).toEqual({});
    expect(waitsFor(requested(), stopRequested(), stopped(T0))).toEqual({});
  });
});

describe('a request that a server gives back', () => {
  const giveBack = { type: 'RequeueSession', serverId: 'srv_1', detail: 'no display' } as const;

  it('waits for another, and knows who has tried', () => {
    given(requested(), assigned()).when(giveBack).then(requeued);
    given(requested(), assigned(), requeued).stateIs({
      status: 'queued',
      assignment: null,
      triedServers: ['srv_1'],
    });
  });

  it('is not that server’s any more, or never was', () => {
    given(requested()).when(giveBack).thenNothing();
    given(requested(), assigned('wl_2', 'srv_2')).when(giveBack).thenNothing();
    given(requested(), assigned(), requeued).when(giveBack).thenNothing();
    given(requested(), activated()).when(giveBack).thenNothing();
    given(requested(), stopRequested()).when(giveBack).thenNothing();
  });
});

/** The last of the events as it stands in the log, as far as timers look at it. */
function recorded(...events: Parameters<typeof given>): RecordedEvent {
  const state = foldAll<'session'>(sessionRef, null, events);
  return { aggregate: sessionRef, ...events.at(-1), state } as RecordedEvent;
}
