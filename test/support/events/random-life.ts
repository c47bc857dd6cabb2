import * as fc from 'fast-check';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import {
  browser,
  createSession,
  egress,
  egressTraffic,
  HOUR,
  iso,
  MINUTE,
  profile,
} from '../examples.ts';

/** One step of a random history: after some time, a command for one of several sessions. */
export type Step = { sessionId: string; afterMs: number; command: CommandAt };
/** A command as a function of the time. */
export type CommandAt = { name: string; at: (now: number) => RandomCommand };
/** A command of a session, or the archivist's wish to carry its state forward. */
export type RandomCommand = SessionCommand | { type: 'CarryForward' };

export const sessionIds = ['ses_1', 'ses_2', 'ses_3', 'ses_4', 'ses_5'] as const;

const workloadId = fc.constantFrom('wl_1', 'wl_2');
const stopReason = fc.constantFrom('user', 'organization', 'operator', 'expired', 'idle');
const failureReason = fc.constantFrom(
  'launch_failed',
  'queue_timeout',
  'browser_crashed',
  'out_of_memory',
  'server_lost',
);

const handoff = fc.record({
  handoffId: fc.constantFrom('hof_1', 'hof_1', 'hof_1', 'hof_2'),
  by: fc.constantFrom('user_1', 'user_2', 'user_2', 'user_2'),
});
const shareId = fc.constantFrom('shr_1', 'shr_1', 'shr_2');

const create = fc.record({
  // The shortest duration, too: only in its last minute does a session get an expiry warning.
  durationMs: fc
    .oneof(fc.integer({ min: 1, max: 1440 }), fc.constant(1))
    .map((minutes) => minutes * MINUTE),
  idleTimeoutMs: fc.option(fc.integer({ min: 1, max: 60 }).map((minutes) => minutes * MINUTE)),
  fingerprint: fc.option(fc.constantFrom('f1', 'f2')),
  hasEgress: fc.boolean(),
  isProfiled: fc.boolean(),
});

/** Every command; those that keep a session going are more frequent than those that end it. */
const command: fc.Arbitrary<CommandAt> = fc.oneof(
  weighted(10, create, ({ hasEgress, isProfiled, ...asked }, now) =>
    createSession({ ...asked, ...(hasEgress && { egress }), ...(isProfiled && { profile }), now }),
  ),
  weighted(1, fc.constant(null), (_, now) => ({ type: 'QueueSession', now })),
  weighted(2, workloadId, (id) => ({ type: 'AssignSession', workloadId: id, serverId: 'srv_1' })),
  weighted(3, fc.constant(null), () => ({
    type: 'RequeueSession',
    serverId: 'srv_1',
    detail: 'for people',
  })),
  weighted(10, workloadId, (id, now) => ({ type: 'ActivateSession', workload: browser(id), now })),
  weighted(3, fc.integer({ min: 1, max: 1440 }), (minutes, now) => ({
    type: 'ExtendSession',
    byMs: minutes * MINUTE,
    maxLifetimeMs: 30 * HOUR,
    duration: `${minutes}m`,
    now,
  })),
  weighted(2, fc.constantFrom('api', 'cdp', 'vnc'), (via, now) => ({
    type: 'RecordAccess',
    via,
    now,
  })),
  weighted(3, fc.constant(null), (_, now) => ({
    type: 'RecordEgress',
    traffic: egressTraffic,
    now,
  })),
  weighted(1, fc.constant(null), (_, now) => ({ type: 'RotateAccess', now })),
  weighted(1, fc.constantFrom('one', 'other'), (name) => ({ type: 'UpdateSession', name })),
  weighted(4, fc.constantFrom('hof_1', 'hof_1', 'hof_2'), (handoffId, now) => ({
    type: 'RequestHandoff',
    handoffId,
    instructions: 'Please sign in.',
    timeoutMs: 10 * MINUTE,
    by: 'user_1',
    now,
  })),
  weighted(4, handoff, (taken, now) => ({ type: 'TakeHandoff', ...taken, now })),
  weighted(4, handoff, (given, now) => ({
    type: 'CompleteHandoff',
    ...given,
    success: true,
    note: '',
    now,
  })),
  weighted(2, fc.constant(null), (_, now) => ({ type: 'ExpireHandoff', now })),
  weighted(3, shareId, (id, now) => ({
    type: 'CreateShare',
    shareId: id,
    mode: 'view',
    lifetimeMs: 4 * HOUR,
    by: 'user_1',
    now,
  })),
  weighted(5, shareId, (id, now) => ({ type: 'RecordShareUse', shareId: id, now })),
  weighted(1, shareId, (id, now) => ({ type: 'RevokeShare', shareId: id, by: 'user_1', now })),
  weighted(2, fc.constantFrom('a.txt', 'b.txt'), (name, now) => ({
    type: 'RecordFileAdded',
    fileId: 'fil_1',
    name,
    bytes: 1,
    sha256: 'ab'.repeat(32),
    origin: 'download',
    now,
  })),
  weighted(1, fc.constant('a.txt'), (name, now) => ({ type: 'RecordFileRemoved', name, now })),
  weighted(1, fc.constantFrom('quota', 'failed'), (reason, now) => ({
    type: 'RecordFileRefused',
    name: 'a.txt',
    origin: 'upload',
    reason,
    now,
  })),
  weighted(1, fc.constant(null), (_, now) => ({ type: 'SaveProfile', now })),
  weighted(2, fc.boolean(), (atEnd) => ({
    type: 'ReportProfile',
    outcome: { version: 4, bytes: 1 },
    atEnd,
  })),
  weighted(1, stopReason, (reason, now) => ({ type: 'StopSession', reason, now })),
  weighted(8, fc.constant(null), (_, now) => ({ type: 'WarnOfExpiry', now })),
  weighted(1, fc.constant(null), (_, now) => ({ type: 'ExpireSession', now })),
  weighted(1, fc.constant(null), (_, now) => ({ type: 'StopIdleSession', now })),
  weighted(1, fc.integer({ min: 0, max: HOUR }), (queueTimeoutMs, now) => ({
    type: 'FailQueuedSession',
    queueTimeoutMs,
    now,
  })),
  weighted(2, fc.integer({ min: 1, max: 2 }), (number, now) => ({
    type: 'StoreRecording',
    segments: [
      {
        number,
        startedAt: iso(now),
        endedAt: iso(now),
        full: true,
        bytes: 100,
        sha256: '01'.repeat(32),
      },
    ],
    gaps: [],
    chain: '23'.repeat(32),
    until: iso(now),
  })),
  weighted(2, fc.constant(null), () => ({ type: 'CarryForward' })),
  weighted(2, fc.constant(null), (_, now) => ({ type: 'ConfirmStopped', now })),
  weighted(1, fc.integer({ min: -5_000, max: HOUR }), (agoMs, now) => ({
    type: 'ReportBrowserClosed',
    closedAt: now - agoMs,
    now,
  })),
  weighted(1, failureReason, (reason, now) => ({
    type: 'FailSession',
    reason,
    detail: 'for people',
    exitCode: null,
    now,
  })),
);

/** Clocks differ between machines, so time may go back a little; and it may jump by hours. */
const afterMs = fc.oneof(
  fc.integer({ min: -5000, max: 5000 }),
  fc.integer({ min: 0, max: 20_000 }),
  fc.integer({ min: 0, max: 5 * MINUTE }),
  fc.integer({ min: 0, max: 3 * HOUR }),
);

const step: fc.Arbitrary<Step> = fc.record({
  sessionId: fc.constantFrom(...sessionIds),
  afterMs,
  command,
});

/** A history of several sessions of one organization. */
export const steps = fc.array(step, { maxLength: 60, size: 'max' });

/** An interference between a decision and its append: none, a false alarm, or a rival's command. */
export type Disturbance = 'none' | 'conflict' | Step;
export const disturbances: fc.Arbitrary<fc.Stream<Disturbance>> = fc.infiniteStream(
  fc.oneof(
    { weight: 2, arbitrary: fc.constant('none' as const) },
    { weight: 1, arbitrary: fc.constant('conflict' as const) },
    { weight: 1, arbitrary: step },
  ),
);

/** The organization's credits: often too few, so that refusals occur too. */
export const means = fc.record({
  credits: fc.oneof(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 0, max: 20_000 })),
  concurrentSessions: fc.integer({ min: 0, max: 3 }),
});

function weighted<Value>(
  weight: number,
  value: fc.Arbitrary<Value>,
  toCommand: (value: Value, now: number) => RandomCommand,
): fc.WeightedArbitrary<CommandAt> {
  const arbitrary = value.map((chosen) => ({
    name: toCommand(chosen, 0).type,
    at: (now: number) => toCommand(chosen, now),
  }));
  return { weight, arbitrary };
}
