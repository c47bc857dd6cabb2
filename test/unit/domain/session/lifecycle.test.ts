import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { sessionEvents, statuses, type SessionEvent, type SessionState } from '#events/session.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { decideCarryForward } from '#src/kernel/domain/carry-forward.ts';
import { decide } from '#src/kernel/domain/session/decide.ts';
import { isFinal, transitions } from '#src/kernel/domain/session/session.ts';
import { foldAll, sessionRef } from '#test/support/given-when-then.ts';
import {
  accessed,
  accessRotated,
  activated,
  assigned,
  egress,
  egressRecorded,
  egressTraffic,
  browser,
  carriedForward,
  createSession,
  expiryWarning,
  extended,
  failed,
  filed,
  handedOff,
  HOUR,
  iso,
  MINUTE,
  queued,
  recordingStored,
  requested,
  requeued,
  profile,
  profiled,
  shared,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

type Status = SessionState['status'] | '–';
/**
 * `active
 * session.extended
 * active`: one transition of a session.
 */
type Line = `${Status} | ${SessionEvent['type']} | ${SessionState['status']}`;

const documented = parseTable(
  readFileSync(
    new URL('../../../../src/kernel/domain/session/lifecycle.md', import.meta.url),
    'utf8',
  ),
);

describe('the documented lifecycle of a session', () => {
  it('equals the table in the code', () => {
    const coded = Object.entries(transitions).flatMap(([type, { from, to }]) =>
      from.map((status) => {
        const after = to === 'same' ? status : to;
        return `${status ?? '–'} | ${type} | ${after}` as Line;
      }),
    );
    expect(documented).toEqual(coded.toSorted());
  });

  it('names every event and every status', () => {
    const named = documented.map((line) => line.split(' | '));
    expect(new Set(named.map(([, type]) => type))).toEqual(new Set(Object.keys(sessionEvents)));
    expect(new Set(named.map(([, , to]) => to))).toEqual(new Set(statuses));
  });

  it('has exactly the transitions that commands cause', () => {
    const seen = new Set<Line>();
    for (const state of states())
      for (const command of commands()) for (const line of linesOf(command, state)) seen.add(line);
    for (const state of states()) {
      const events = decideCarryForward('session', { state, sequence: 1 }, 1) as SessionEvent[];
      for (const line of linesAfter(events, state)) seen.add(line);
    }
    expect([...seen].toSorted()).toEqual(documented);
  });

  it('matches the effect of every event in every status that allows it', () => {
    const events = exampleEvents();
    for (const line of documented) {
      const [from, type, to] = line.split(' | ');
      const event = events[type as SessionEvent['type']];
      const froms = states().filter((state) => (state?.status ?? '–') === from);
      expect(froms.length, line).toBeGreaterThan(0);
      for (const state of froms)
        expect(evolve<'session'>(sessionRef, state, event).status).toBe(to);
    }
  });
});

test.each(['stopped', 'failed'] as const)('no command changes a session that is %s', (status) => {
  expect(isFinal(status)).toBe(true);
  expect(documented.filter((line) => line.startsWith(`${status} |`))).toEqual([]);
  for (const state of states().filter((each) => each?.status === status))
    for (const command of commands()) expect(linesOf(command, state)).toEqual([]);
});

test('an event before the request is an error', () => {
  for (const event of Object.values(exampleEvents()))
    if (event.type !== 'session.requested')
      expect(() => evolve<'session'>(sessionRef, null, event)).toThrow(RangeError);
});

function parseTable(markdown: string): Line[] {
  const rows = markdown.split('\n').filter((line) => /^\| [–a-z]/.test(line));
  const lines = rows.slice(1).flatMap((row) => {
    const [froms = '', event = '', to = ''] = row
      .split('|')
      .slice(1)
      .map((cell) => cell.trim());
    return froms
      .split(', ')
      .map((from) => `${from} | session.${event} | ${to === 'same' ? from : to}`);
  });
  return (lines as Line[]).toSorted();
}

/** Each status, in each of its forms. */
function states(): (SessionState | null)[] {
  const asked = requested({ egress, idleTimeoutMs: 10 * MINUTE, fingerprint: 'f1' });
  const histories = [
    [],
    [asked],
    [asked, assigned()],
    [asked, queued],
    [asked, queued, assigned('wl_2')],
    [asked, assigned(), requeued],
    [asked, activated()],
    [asked, activated(T0, browser('wl_2')), accessed(T0)],
    [asked, activated(), handedOff[0]],
    [asked, activated(), handedOff[0], handedOff[1]],
    [asked, shared[0]],
    [asked, queued, shared[0]],
    [asked, activated(), shared[0]],
    [asked, activated(), stopRequested()],
    [requested({ profile }), activated()],
    [requested({ profile }), activated(), stopRequested()],
    [asked, stopRequested('operator')],
    [asked, activated(), stopRequested(), stopped(T0 + MINUTE, 1)],
    [asked, stopRequested(), stopped(T0)],
    [asked, failed()],
    [asked, activated(), failed({ reason: 'server_lost' })],
  ];
  return histories.map((events) => foldAll<'session'>(sessionRef, null, events));
}

/** Every command, before, at and after the time that it depends on. */
function commands(): SessionCommand[] {
  const extend = { type: 'ExtendSession', maxLifetimeMs: 72 * HOUR, duration: '' } as const;
  const gone = { reason: 'server_lost', detail: '', exitCode: null } as const;
  const times = [T0 - MINUTE, T0, T0 + 5 * MINUTE, T0 + 2 * HOUR - 1, T0 + 3 * HOUR];
  const byTime = times.flatMap((now): SessionCommand[] => [
    createSession({ now }),
    createSession({ now, fingerprint: 'f1' }),
    { type: 'QueueSession', now },
    { type: 'ActivateSession', workload: browser(), now },
    { ...extend, byMs: HOUR, now },
    { ...extend, byMs: 100 * HOUR, now },
    { type: 'RecordAccess', via: 'cdp', now },
    { type: 'RotateAccess', now },
    ...steering(now),
    { type: 'RecordEgress', traffic: egressTraffic, now },
    ...filing(now),
    { type: 'StopSession', reason: 'user', now },
    { type: 'WarnOfExpiry', now },
    { type: 'ExpireSession', now },
    { type: 'StopIdleSession', now },
    { type: 'FailQueuedSession', queueTimeoutMs: 5 * MINUTE, now },
    { type: 'ConfirmStopped', now },
    { type: 'SaveProfile', now },
    { type: 'FailSession', ...gone, now },
  ]);
  return [
    ...byTime,
    { type: 'UpdateSession', name: 'Checkout' },
    { type: 'StoreRecording', ...structuredClone(recordingStored.data) },
    { type: 'AssignSession', workloadId: 'wl_1', serverId: 'srv_1' },
    { type: 'RequeueSession', serverId: 'srv_1', detail: 'no display' },
    { type: 'ReportProfile', outcome: { version: 4, bytes: 1 }, atEnd: true },
  ];
}

/** Commands of hand-offs and shares. */
function steering(now: number): SessionCommand[] {
  const [handoff, share] = [{ handoffId: 'hof_1' }, { shareId: 'shr_1' }];
  const by = 'user_2';
  const [instructions, timeoutMs, lifetimeMs] = ['Sign in.', 10 * MINUTE, HOUR];
  return [
    { type: 'RequestHandoff', ...handoff, instructions, timeoutMs, by, now },
    { type: 'TakeHandoff', ...handoff, by, now },
    { type: 'CompleteHandoff', ...handoff, by, success: true, note: '', now },
    { type: 'ExpireHandoff', now },
    { type: 'CreateShare', ...share, mode: 'view', lifetimeMs, by, now },
    { type: 'RecordShareUse', ...share, now },
    { type: 'RevokeShare', ...share, by, now },
  ];
}

/** Reports about files. */
function filing(now: number): SessionCommand[] {
  const file = { name: 'a.txt', origin: 'download' } as const;
  const content = { fileId: 'fil_1', bytes: 1, sha256: 'ab'.repeat(32) };
  return [
    { type: 'RecordFileAdded', ...file, ...content, now },
    { type: 'RecordFileRemoved', name: 'a.txt', now },
    { type: 'RecordFileRefused', ...file, reason: 'quota', now },
  ];
}

function exampleEvents(): { [Type in SessionEvent['type']]: SessionEvent } {
  return {
    'session.requested': requested(),
    'session.queued': queued,
    'session.assigned': assigned(),
    'session.requeued': requeued,
    'session.activated': activated(),
    'session.extended': extended(HOUR, T0 + 3 * HOUR),
    'session.accessed': accessed(T0),
    'session.access-rotated': accessRotated(1),
    'session.updated': { type: 'session.updated', data: { name: 'Checkout' } },
    'session.handoff-requested': handedOff[0],
    'session.handoff-taken': handedOff[1],
    'session.handoff-completed': handedOff[2],
    'session.handoff-expired': {
      type: 'session.handoff-expired',
      data: { handoffId: 'hof_1', at: iso(T0 + HOUR) },
    },
    'session.share-created': shared[0],
    'session.share-used': shared[1],
    'session.share-revoked': shared[2],
    'session.egress-recorded': egressRecorded,
    'session.recording-stored': recordingStored,
    'session.file-added': filed[0],
    'session.file-removed': filed[1],
    'session.file-refused': filed[2],
    'session.profile-save-requested': profiled[2],
    'session.profile-saved': profiled[0],
    'session.profile-not-saved': profiled[1],
    'session.expiry-warning': expiryWarning,
    'session.stop-requested': stopRequested(),
    'session.stopped': stopped(T0),
    'session.failed': failed(),
    'session.carried-forward': carriedForward,
  };
}

/** The transitions that a command causes, one for each event. */
function linesOf(command: SessionCommand, before: SessionState | null): Line[] {
  const events = decide(command, before);
  return isRejection(events) ? [] : linesAfter(events, before);
}

function linesAfter(events: readonly SessionEvent[], before: SessionState | null): Line[] {
  let state = before;
  return events.map((event): Line => {
    const from = state?.status ?? '–';
    state = evolve<'session'>(sessionRef, state, event);
    return `${from} | ${event.type} | ${state.status}`;
  });
}
