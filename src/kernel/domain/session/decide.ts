import type { BlackBox } from '#events/session/black-box.ts';
import type { SessionEvent, SessionState, StopReason } from '#events/session.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { totalsOf } from '../egress/traffic.ts';
import type {
  CreateSession,
  ExtendSession,
  SessionCommand,
  StopSession,
  UpdateSession,
} from './commands.ts';
import { decideFile } from './decide-file.ts';
import { decideHandoff } from './decide-handoff.ts';
import { handoffEndsAt } from './handoff.ts';
import { hasEnded } from './rejections.ts';
import { decideProfileOutcome, saveProfile, unsavedAtEnd } from './decide-profile.ts';
import { decideShare } from './decide-share.ts';
import { beyondLifetime, minutesOf } from './duration.ts';
import { storeRecording } from './recording.ts';
import { isAwaitingServer, isFinal, keyedExtension } from './session.ts';
import { tooMuchText } from './text-size.ts';

/** At most one `accessed` event per minute and session. */
export const ACCESS_SAMPLE_MS = 60_000;
/** An active session gets its expiry warning this long before its end. */
export const EXPIRY_WARNING_MS = 60_000;

/**
 * Decides a command: the events to append (none if nothing changes), or a rejection. Late reports,
 * and timers that fire early or twice, are not errors: they change nothing. Only a browser that
 * comes too late is rejected, so that its provisioner ends it.
 */
export function decide(
  command: SessionCommand,
  session: SessionState | null,
): SessionEvent[] | Rejection {
  if (command.type === 'CreateSession') return create(command, session);
  if (session === null) return reject('SESSION_NOT_FOUND');
  switch (command.type) {
    case 'QueueSession':
      return isAwaitingServer(session) && session.status === 'creating'
        ? [{ type: 'session.queued', data: {} }]
        : [];
    case 'AssignSession':
      return assign(command, session);
    case 'RequeueSession':
      return requeue(command, session);
    case 'ActivateSession':
      return activate(command, session);
    case 'ExtendSession':
      return extend(command, session);
    case 'RecordAccess':
      return recordAccess(command, session);
    case 'RotateAccess':
      return rotateAccess(command.now, session);
    case 'UpdateSession':
      return update(command, session);
    case 'RequestHandoff':
    case 'TakeHandoff':
    case 'CompleteHandoff':
    case 'ExpireHandoff':
      return decideHandoff(command, session);
    case 'CreateShare':
    case 'RecordShareUse':
    case 'RevokeShare':
      return decideShare(command, session);
    case 'RecordEgress':
      return recordEgress(command, session);
    case 'RecordFileAdded':
    case 'RecordFileRemoved':
    case 'RecordFileRefused':
      return decideFile(command, session);
    case 'SaveProfile':
      return saveProfile(command, session);
    case 'ReportProfile':
      return decideProfileOutcome(command, session);
    case 'StopSession':
      return isMeant(command, session)
        ? stop(command.reason, command.now, session, command.note)
        : [];
    case 'StoreRecording':
      return storeRecording(command, session);
    case 'WarnOfExpiry':
      return warnOfExpiry(command.now, session);
    case 'ExpireSession':
      return command.now >= Date.parse(session.expiresAt)
        ? stop('expired', command.now, session)
        : [];
    case 'StopIdleSession':
      return isIdle(session, command.now) ? stop('idle', command.now, session) : [];
    case 'FailQueuedSession':
      return failQueued(command, session);
    case 'ConfirmStopped':
      return session.status === 'stopping'
        ? [...unsaved(session), stopped(session, session.endedReason, command)]
        : [];
    case 'ReportBrowserClosed':
      return browserClosed(command, session);
    case 'FailSession':
      return fail(command, session);
  }
}

function create(command: CreateSession, session: SessionState | null): SessionEvent[] | Rejection {
  // An id is generated for each request, or derived from its Idempotency-Key: this request is a
  // repeat.
  if (session !== null)
    return session.fingerprint === command.fingerprint && command.fingerprint !== null
      ? []
      : reject('IDEMPOTENCY_CONFLICT', { session_id: session.id });
  const { type: _, durationMs, now, ...asked } = command;
  return [
    {
      type: 'session.requested',
      data: {
        ...asked,
        createdAt: iso(now),
        expiresAt: iso(now + durationMs),
        creditsReserved: minutesOf(durationMs),
      },
    },
  ];
}

function assign(
  { workloadId, serverId }: { workloadId: string; serverId: string },
  session: SessionState,
): SessionEvent[] {
  if (session.status !== 'creating' && session.status !== 'queued') return [];
  if (session.assignment?.workloadId === workloadId) return [];
  if (isAnothers(session, serverId)) return [];
  return [{ type: 'session.assigned', data: { workloadId, serverId } }];
}

/** Whether another server has accepted the session: several may try to at the same time. */
function isAnothers({ assignment }: SessionState, serverId: string): boolean {
  return assignment !== null && assignment.serverId !== serverId;
}

/** Only the server that has the session can return it. */
function requeue(
  { serverId, detail }: Extract<SessionCommand, { type: 'RequeueSession' }>,
  session: SessionState,
): SessionEvent[] {
  if (session.assignment?.serverId !== serverId) return [];
  return [{ type: 'session.requeued', data: { serverId, detail } }];
}

function activate(
  { workload, now }: Extract<SessionCommand, { type: 'ActivateSession' }>,
  session: SessionState,
): SessionEvent[] | Rejection {
  if (session.status === 'active' && session.workload.workloadId === workload.workloadId) return [];
  const isSettledOrTaken =
    (session.status !== 'creating' && session.status !== 'queued') ||
    isAnothers(session, workload.serverId);
  if (isSettledOrTaken)
    return reject('SESSION_NOT_ACTIVE', { session_id: session.id, status: session.status });
  return [{ type: 'session.activated', data: { workload, startedAt: iso(now) } }];
}

function extend(
  { byMs, maxLifetimeMs, duration, repeatable, now }: ExtendSession,
  session: SessionState,
): SessionEvent[] | Rejection {
  const before = keyedExtension(session, repeatable?.key);
  // A repeat of the same request, whatever has happened to the session since.
  if (before !== null)
    return before.repeatable.fingerprint === repeatable?.fingerprint
      ? []
      : reject('IDEMPOTENCY_CONFLICT', { session_id: session.id });
  if (session.status === 'stopping' || isFinal(session.status))
    return reject('SESSION_NOT_ACTIVE', { session_id: session.id, status: session.status });
  // The expiry timer may fire late: a session whose time is up ends even if an extension is first.
  if (now >= Date.parse(session.expiresAt)) return hasExpired(session);
  const expiresAtMs = Date.parse(session.expiresAt) + byMs;
  if (expiresAtMs - Date.parse(session.createdAt) > maxLifetimeMs)
    return beyondLifetime(duration, maxLifetimeMs);
  return [
    {
      type: 'session.extended',
      data: {
        byMs,
        expiresAt: iso(expiresAtMs),
        creditsReserved: minutesOf(byMs),
        ...(repeatable === undefined ? {} : { repeatable }),
      },
    },
  ];
}

function hasExpired({ id, status, expiresAt }: SessionState): Rejection {
  const context = { session_id: id, status, expires_at: expiresAt };
  return reject('SESSION_NOT_ACTIVE', context, { message: 'The session has expired.' });
}

function recordAccess(
  { via, now }: Extract<SessionCommand, { type: 'RecordAccess' }>,
  session: SessionState,
): SessionEvent[] {
  if (session.status !== 'active') return [];
  const { lastAccessedAt } = session;
  if (lastAccessedAt !== null && now - Date.parse(lastAccessedAt) < ACCESS_SAMPLE_MS) return [];
  return [{ type: 'session.accessed', data: { via, at: iso(now) } }];
}

/** A record that comes after the session's end is dropped: the session does not change any more. */
function recordEgress(
  { traffic, now }: Extract<SessionCommand, { type: 'RecordEgress' }>,
  { egress, status }: SessionState,
): SessionEvent[] {
  const isOpen = status === 'active' || status === 'stopping';
  if (egress === undefined || !isOpen) return [];
  return [{ type: 'session.egress-recorded', data: { at: iso(now), ...traffic } }];
}

/** Addresses exist from the request on, so a session without a browser is rotated too. */
function rotateAccess(now: number, session: SessionState): SessionEvent[] | Rejection {
  if (session.status === 'stopping' || isFinal(session.status)) return hasEnded(session);
  const epoch = (session.accessEpoch ?? 0) + 1;
  return [{ type: 'session.access-rotated', data: { epoch, at: iso(now) } }];
}

/** Fields that are equal to those before are left out; none left: nothing changes. */
function update(
  { name, description, labels }: UpdateSession,
  session: SessionState,
): SessionEvent[] | Rejection {
  if (session.status === 'stopping' || isFinal(session.status)) return hasEnded(session);
  const data = {
    ...(name === undefined || name === session.name ? {} : { name }),
    ...(description === undefined || description === session.description ? {} : { description }),
    ...(labels === undefined || areEqual(labels, session.labels) ? {} : { labels }),
  };
  if (Object.keys(data).length === 0) return [];
  // A session of before this bound may still be renamed.
  const isText = data.description !== undefined || data.labels !== undefined;
  const tooMuch = isText ? tooMuchText({ ...session, ...data }) : null;
  return tooMuch ?? [{ type: 'session.updated', data }];
}

function areEqual(one: Record<string, string>, other: Record<string, string>): boolean {
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
  );
}

/** Warns once for each end time; if an extension has moved the end, it warns again. */
function warnOfExpiry(now: number, session: SessionState): SessionEvent[] {
  const { expiresAt } = session;
  if (session.status !== 'active' || session.expiryWarnedFor === expiresAt) return [];
  const end = Date.parse(expiresAt);
  // A timer that was held while no timekeeper ran fires after the end: too late for a warning.
  const isNear = now >= end - EXPIRY_WARNING_MS && now < end;
  return isNear ? [{ type: 'session.expiry-warning', data: { expiresAt } }] : [];
}

/**
 * The charge of a session that is stopped during its launch. A failure of the service is not
 * charged.
 */
const LAUNCH_CREDITS = 1;

function isMeant({ onlyIf = {} }: StopSession, session: SessionState): boolean {
  const { status = session.status, labels = {} } = onlyIf;
  const isLabelled = Object.entries(labels).every(([name, text]) => session.labels[name] === text);
  return status === session.status && isLabelled;
}

/**
 * A session without a browser ends at once; one with a browser waits for the report of the
 * browser's end.
 */
function stop(
  reason: StopReason,
  now: number,
  session: SessionState,
  note?: string,
): SessionEvent[] {
  if (session.status === 'stopping' || isFinal(session.status)) return [];
  const asked: SessionEvent = {
    type: 'session.stop-requested',
    data: { reason, at: iso(now), ...(note === undefined ? {} : { note }) },
  };
  if (session.workload !== null) return [asked];
  const leastUsed = session.assignment === null ? 0 : LAUNCH_CREDITS;
  return [asked, stopped(session, reason, { now }, leastUsed)];
}

/**
 * A close is a stop that the user has carried out: the session is billed until the close, though
 * the report may come much later. The time of the close is by another machine's clock, so it is
 * limited to the time between the start and the report.
 */
function browserClosed(
  command: Extract<SessionCommand, { type: 'ReportBrowserClosed' }>,
  session: SessionState,
): SessionEvent[] {
  const { closedAt, now } = command;
  if (isFinal(session.status)) return [];
  if (session.status === 'stopping')
    return [...unsaved(session), stopped(session, session.endedReason, command)];
  const startedAt = Date.parse(session.startedAt ?? session.createdAt);
  const at = iso(Math.max(startedAt, Math.min(closedAt, now)));
  const reason = 'browser_closed';
  return [
    { type: 'session.stop-requested', data: { reason, at } },
    ...unsaved(session),
    stopped({ ...session, stopRequestedAt: at }, reason, command),
  ];
}

function unsaved(session: SessionState): SessionEvent[] {
  return unsavedAtEnd(session, 'the browser has ended, and its profile was not read');
}

/** A server's report may come when the session is another one's by now. */
function fail(command: Failure, session: SessionState): SessionEvent[] {
  const { serverId } = command;
  const holder = (session.workload ?? session.assignment)?.serverId ?? serverId;
  if (isFinal(session.status) || (serverId !== undefined && holder !== serverId)) return [];
  const why = `the session failed: ${command.reason}`;
  return [...unsavedAtEnd(session, why), failed(command, session)];
}

function failQueued(
  { queueTimeoutMs, now }: Extract<SessionCommand, { type: 'FailQueuedSession' }>,
  session: SessionState,
): SessionEvent[] {
  if (!isAwaitingServer(session)) return [];
  if (now - Date.parse(session.createdAt) < queueTimeoutMs) return [];
  const detail = 'no server had room for it in time';
  return [failed({ reason: 'queue_timeout', detail, exitCode: null, now }, session)];
}

function stopped(
  session: SessionState,
  reason: StopReason,
  report: Report,
  leastUsed = 0,
): SessionEvent {
  const settled = settle(session, report.now, leastUsed);
  return { type: 'session.stopped', data: { reason, ...settled, ...told(session, report) } };
}
type Report = { now: number; blackBox?: BlackBox };

/** What the browser told before the end, if the session's owner wants that. */
function told(session: SessionState, { blackBox }: Report): { blackBox?: BlackBox } {
  return blackBox === undefined || session.blackBox === false ? {} : { blackBox };
}

function failed(
  report: Pick<Failure, 'reason' | 'detail' | 'exitCode' | 'now' | 'blackBox'>,
  session: SessionState,
): SessionEvent {
  const { reason, detail, exitCode, now } = report;
  const ended = { reason, detail, exitCode, ...settle(session, now) };
  return { type: 'session.failed', data: { ...ended, ...told(session, report) } };
}
type Failure = Extract<SessionCommand, { type: 'FailSession' }>;

/**
 * Whole minutes from the start to the request to stop (or the failure) are used; the rest of the
 * reserved credits is returned. The traffic of a session with rules is summed up.
 * @param leastUsed credits that are used in any case, as far as they are reserved
 */
function settle(session: SessionState, now: number, leastUsed = 0) {
  const until = session.stopRequestedAt === null ? now : Date.parse(session.stopRequestedAt);
  const ranMs = session.startedAt === null ? 0 : until - Date.parse(session.startedAt);
  const used = Math.max(leastUsed, minutesOf(ranMs));
  const creditsUsed = Math.min(used, session.creditsReserved);
  const creditsRefunded = session.creditsReserved - creditsUsed;
  const { egressTraffic } = session;
  const egress = egressTraffic === undefined ? {} : { egress: totalsOf(egressTraffic) };
  return { endedAt: iso(now), creditsUsed, creditsRefunded, ...egress };
}

/** When to end an active session with an idle timeout if it is not used again; null: never. */
export function idleAt(session: SessionState): number | null {
  if (session.status !== 'active' || session.idleTimeoutMs === null) return null;
  const usedAt = Date.parse(session.lastAccessedAt ?? session.startedAt);
  // A session whose automation waits for a person is not idle.
  const handoffUntil = handoffEndsAt(session) ?? 0;
  // Use is recorded once a minute, so the last record may be that much older than the last use.
  return Math.max(usedAt + session.idleTimeoutMs + ACCESS_SAMPLE_MS, handoffUntil);
}

function isIdle(session: SessionState, now: number): boolean {
  const at = idleAt(session);
  return at !== null && now >= at;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
