import { describe, expect, it } from 'vitest';
import type { EventWithState } from '#events/events.ts';
import { timersAfter, timersOf } from '#src/roles/timekeeper/schedule-timers.ts';
import { rescheduleAt } from '#src/roles/timekeeper/timer-command.ts';
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
  failed,
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

describe('a session gets an expiry warning', () => {
  it('a minute before its end, and not earlier', () => {
    given(requested(), activated())
      .when(warn(END - MINUTE - 1))
      .thenNothing();
    given(requested(), activated())
      .when(warn(END - MINUTE))
      .then(expiryWarning);
    given(requested(), activated(), expiryWarning).stateIs({ status: 'active' });
  });

  it('but not after its end, if the timer fires late', () => {
    given(requested(), activated()).when(warn(END)).thenNothing();
  });

  it('once, and again if an extension has moved its end', () => {
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

  it('by a timer that is set at its start and moves when it is extended', () => {
    const at = (kind: string, ...events: Parameters<typeof given>) =>
      timersAfter(recorded(...events), queue).flatMap((step) =>
        step !== 'cancel-all' && step.kind === kind ? [step.at] : [],
      );
    expect(at('expiry-warning', requested())).toEqual([]);
    expect(at('expiry-warning', requested(), activated())).toEqual([END - MINUTE]);
    const moved = extended(HOUR, END + HOUR);
    expect(at('expiry-warning', requested(), activated(), moved)).toEqual([END + HOUR - MINUTE]);
    // A request that a server returned may have exceeded its time in the queue during the launch.
    const back = [requested(), assigned(), requeued] as const;
    expect(at('queue-timeout', ...back)).toEqual([T0 + queue.timeoutMs]);
  });

  it('by a timer that is set again if it fired too early, but not after the warning', () => {
    const rearm = (...events: Parameters<typeof given>) => {
      const state = foldAll<'session'>(sessionRef, null, events);
      const times = { now: T0, queueTimeoutMs: queue.timeoutMs, firedAt: T0 };
      return state === null ? null : rescheduleAt('expiry-warning', state, times);
    };
    expect(rearm(requested(), activated())).toBe(END - MINUTE);
    expect(rearm(requested(), activated(), expiryWarning)).toBeNull();
    expect(rearm(requested(), activated(), stopRequested())).toBeNull();
  });
});

describe('the timers of a session, by its state alone', () => {
  function waitsFor(...events: Parameters<typeof given>): Record<string, number> {
    const state = foldAll<'session'>(sessionRef, null, events);
    if (state === null) throw new Error('no session');
    return Object.fromEntries(timersOf(state, queue).map(({ kind, at }) => [kind, at]));
  }

  it('are its expiry, and the queue timeout while no server has accepted it', () => {
    const inQueue = { expiry: END, 'queue-timeout': T0 + queue.timeoutMs };
    expect(waitsFor(requested())).toEqual({ ...inQueue, 'queue-after': T0 + queue.afterMs });
    expect(waitsFor(requested(), queued)).toEqual(inQueue);
    expect(waitsFor(requested(), assigned(), requeued)).toEqual(inQueue);
    expect(waitsFor(requested(), assigned())).toEqual({ expiry: END });
  });

  it('are its expiry and its idle timeout while it is active, and not the warning', () => {
    const idle = requested({ idleTimeoutMs: 5 * MINUTE });
    expect(waitsFor(requested(), activated())).toEqual({ expiry: END });
    // With the extra minute, since use is recorded once a minute.
    expect(waitsFor(idle, activated())).toEqual({ expiry: END, idle: T0 + 6 * MINUTE });
  });

  it('are set at its request, and all cancelled at its end', () => {
    expect(timersAfter(recorded(requested()), queue)).toEqual([
      { kind: 'expiry', at: END },
      { kind: 'queue-after', at: T0 + queue.afterMs },
      { kind: 'queue-timeout', at: T0 + queue.timeoutMs },
    ]);
    const ends = [[stopRequested(), stopped(T0)], [failed()]];
    for (const end of ends)
      expect(timersAfter(recorded(requested(), ...end), queue)).toEqual(['cancel-all']);
  });

  it('are none once it is stopping', () => {
    expect(waitsFor(requested(), activated(), stopRequested())).toEqual({});
    expect(waitsFor(requested(), stopRequested(), stopped(T0))).toEqual({});
  });
});

describe('a request that a server returns to the queue', () => {
  const giveBack = { type: 'RequeueSession', serverId: 'srv_1', detail: 'no display' } as const;

  it('waits for another server, and lists the servers that have tried', () => {
    given(requested(), assigned()).when(giveBack).then(requeued);
    given(requested(), assigned(), requeued).stateIs({
      status: 'queued',
      assignment: null,
      triedServers: ['srv_1'],
    });
  });

  it('changes nothing if that server does not have it', () => {
    given(requested()).when(giveBack).thenNothing();
    given(requested(), assigned('wl_2', 'srv_2')).when(giveBack).thenNothing();
    given(requested(), assigned(), requeued).when(giveBack).thenNothing();
    given(requested(), activated()).when(giveBack).thenNothing();
    given(requested(), stopRequested()).when(giveBack).thenNothing();
  });
});

/** The last of the events as stored, with the fields that timers use. */
function recorded(...events: Parameters<typeof given>): EventWithState<'session'> {
  const state = foldAll<'session'>(sessionRef, null, events);
  return { aggregate: sessionRef, ...events.at(-1), state } as EventWithState<'session'>;
}
