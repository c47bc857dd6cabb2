import { describe, expect, it, test } from 'vitest';
import type { FailureReason } from '#events/session.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import { browser, createSession, HOUR, MINUTE, SECOND, T0 } from '#test/support/examples.ts';
import { context, ledgerRef, newCause, watchedLog } from '#test/support/watched-event-store.ts';

/** How each way to end changes the organization's 1,000 credits. */

const { organizationId, id } = sessionRef;
const CREDITS = 1_000;
const started = T0 + 10 * SECOND;
const create = createSession({ idleTimeoutMs: 5 * MINUTE });
const activate: SessionCommand = { type: 'ActivateSession', workload: browser(), now: started };
const assign: SessionCommand = { type: 'AssignSession', workloadId: 'wl_1', serverId: 'srv_1' };
const extend: SessionCommand = {
  type: 'ExtendSession',
  byMs: HOUR,
  maxLifetimeMs: 72 * HOUR,
  duration: '1h',
  now: T0,
};

const stop = (minutes: number, reason: 'user' | 'organization' | 'operator' = 'user') =>
  ({ type: 'StopSession', reason, now: started + minutes * MINUTE }) as const;
const confirm = (minutes: number) =>
  ({ type: 'ConfirmStopped', now: started + minutes * MINUTE }) as const;
const fail = (reason: FailureReason, minutes: number) =>
  ({
    type: 'FailSession',
    reason,
    detail: '',
    exitCode: null,
    now: started + minutes * MINUTE,
  }) as const;
const close = (minutes: number, reported: number) =>
  ({
    type: 'ReportBrowserClosed',
    closedAt: started + minutes * MINUTE,
    now: started + reported * MINUTE,
  }) as const;
const expire: SessionCommand = { type: 'ExpireSession', now: T0 + 2 * HOUR };
const stopIdle: SessionCommand = { type: 'StopIdleSession', now: started + 6 * MINUTE };
const failQueued: SessionCommand = {
  type: 'FailQueuedSession',
  queueTimeoutMs: 5 * MINUTE,
  now: T0 + 5 * MINUTE,
};

async function live(...commands: readonly SessionCommand[]) {
  const log = await watchedLog({ credits: CREDITS });
  const limits = { concurrentSessions: 1 };
  let outcome;
  for (const command of commands) {
    outcome = await handleSessionCommand(
      context(log),
      { organizationId, id },
      command,
      newCause(),
      limits,
    );
    expect(isRejection(outcome)).toBe(false);
  }
  const ledger = (await log.readLast<'ledger'>(ledgerRef))?.state;
  return { outcome, ledger };
}

describe('unused credits and the slot are returned when a session is or has', () => {
  test.each<[end: string, reason: string, used: number, commands: SessionCommand[]]>([
    ['stopped by its user', 'user', 7, [activate, stop(7), confirm(8)]],
    [
      'stopped by its organization',
      'organization',
      7,
      [activate, stop(7, 'organization'), confirm(8)],
    ],
    ['stopped by an operator', 'operator', 7, [activate, stop(7, 'operator'), confirm(8)]],
    ['expired', 'expired', 120, [activate, expire, confirm(121)]],
    ['idle', 'idle', 6, [activate, stopIdle, confirm(7)]],
    ['its browser closed', 'browser_closed', 7, [activate, close(7, 9)]],
    ['closed while it was stopping', 'user', 7, [activate, stop(7), close(8, 9)]],
    ['extended and stopped', 'user', 7, [activate, extend, stop(7), confirm(8)]],
    ['its browser crashed', 'browser_crashed', 7, [activate, fail('browser_crashed', 7)]],
    ['out of memory', 'out_of_memory', 7, [activate, fail('out_of_memory', 7)]],
    ['its server lost', 'server_lost', 7, [activate, fail('server_lost', 7)]],
    [
      'its server lost while it ended',
      'server_lost',
      7,
      [activate, stop(7), fail('server_lost', 9)],
    ],
  ])('%s', async (_, reason, used, commands) => {
    const { outcome, ledger } = await live(create, ...commands);
    expect(outcome).toMatchObject({ state: { endedReason: reason, creditsUsed: used } });
    expect(ledger).toEqual({
      slotsInUse: 0,
      sessionsEnded: 1,
      creditsGranted: CREDITS,
      creditsAvailable: CREDITS - used,
      creditsReserved: 0,
      creditsUsed: used,
    });
  });
});

describe('a session without a browser costs nothing', () => {
  test.each<[end: string, reason: string, commands: SessionCommand[]]>([
    ['no server took it in time', 'queue_timeout', [{ type: 'QueueSession', now: T0 }, failQueued]],
    ['its launch failed', 'launch_failed', [assign, fail('launch_failed', 1)]],
    [
      'its launch failed after an extension',
      'launch_failed',
      [extend, assign, fail('launch_failed', 1)],
    ],
    ['its server lost before', 'server_lost', [assign, fail('server_lost', 1)]],
    ['stopped before', 'user', [stop(3)]],
    ['expired before', 'expired', [expire]],
  ])('%s', async (_, reason, commands) => {
    const { outcome, ledger } = await live(create, ...commands);
    expect(outcome).toMatchObject({ state: { endedReason: reason, creditsUsed: 0 } });
    expect(ledger).toMatchObject({
      slotsInUse: 0,
      creditsAvailable: CREDITS,
      creditsReserved: 0,
      creditsUsed: 0,
    });
  });
});

it('an end that is reported twice, or in two ways, refunds once', async () => {
  const { ledger } = await live(
    create,
    activate,
    stop(7),
    stop(8),
    close(8, 8),
    fail('browser_crashed', 9),
    confirm(10),
    fail('server_lost', 11),
    expire,
  );
  expect(ledger).toMatchObject({ slotsInUse: 0, sessionsEnded: 1, creditsAvailable: CREDITS - 7 });
});
