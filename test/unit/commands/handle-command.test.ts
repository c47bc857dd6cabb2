import { describe, expect, it } from 'vitest';
import type { RecordedOf } from '#events/events.ts';
import { withArchive } from '#src/features/archive/archived-event-store.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { StreamAppend, EventStore } from '#src/kernel/event-store/event-store.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import { browser, createSession, HOUR, MINUTE, T0 } from '#test/support/examples.ts';
import {
  context,
  grant,
  ledgerRef,
  newCause,
  once,
  watchedLog,
} from '#test/support/watched-event-store.ts';

const { organizationId } = sessionRef;
const activate: SessionCommand = { type: 'ActivateSession', workload: browser(), now: T0 };
const stop: SessionCommand = { type: 'StopSession', reason: 'user', now: T0 + MINUTE };
const confirm: SessionCommand = { type: 'ConfirmStopped', now: T0 + MINUTE };
const extend: SessionCommand = {
  type: 'ExtendSession',
  byMs: HOUR,
  maxLifetimeMs: 72 * HOUR,
  duration: '1h',
  now: T0,
};

describe('a session and its ledger', () => {
  it.each([
    ['is requested', [], createSession(), ['session.requested', 'ledger.slot-reserved']],
    ['is extended', [createSession()], extend, ['session.extended', 'ledger.credits-reserved']],
    [
      'is stopped without a browser',
      [createSession()],
      stop,
      ['session.stop-requested', 'session.stopped', 'ledger.slot-released'],
    ],
    [
      'has ended',
      [createSession(), activate, stop],
      confirm,
      ['session.stopped', 'ledger.slot-released'],
    ],
  ] as const)('move in one append when it %s', async (_, before, command, types) => {
    const log = await watchedLog();
    for (const each of before) await ask(log, each);
    log.appends.length = 0;
    await ask(log, command);
    expect(log.appends.map(typesOf)).toEqual([types]);
  });

  it('are both left unchanged if the ledger rejects', async () => {
    const log = await watchedLog({ credits: 119 });
    expect(await ask(log, createSession())).toMatchObject({ code: 'INSUFFICIENT_CREDITS' });
    expect(await log.readLast<'session'>(sessionRef)).toBeNull();
  });

  it('do not both change for an event without a cost', async () => {
    const log = await watchedLog();
    await ask(log, createSession());
    await ask(log, activate);
    expect(log.appends.map(typesOf).at(-1)).toEqual(['session.activated']);
  });
});

describe('a command', () => {
  it('answers with the state after it and its sequence in the event store', async () => {
    const log = await watchedLog();
    const handled = await ask(log, createSession());
    expect(handled).toMatchObject({ isChanged: true, sequence: 2, state: { status: 'creating' } });
    expect(await log.readLast<'session'>(sessionRef)).toMatchObject({ sequence: 2 });
  });

  it('without effect appends nothing', async () => {
    const log = await watchedLog();
    for (const command of [createSession(), activate, stop]) await ask(log, command);
    const count = log.appends.length;
    const handled = await ask(log, stop);
    expect(handled).toMatchObject({ isChanged: false, state: { status: 'stopping' } });
    expect(log.appends).toHaveLength(count);
  });

  it('names the session in its rejection', async () => {
    const log = await watchedLog();
    expect(await ask(log, stop)).toEqual({
      code: 'SESSION_NOT_FOUND',
      context: { session_id: 'ses_1' },
    });
  });

  it('records the actor, the time of the decision and the state after each event', async () => {
    const log = await watchedLog();
    await ask(log, createSession());
    await ask(log, stop);
    const events = await readAll(log);
    expect(events.map(({ state }) => state?.status)).toEqual(['creating', 'stopping', 'stopped']);
    expect(new Set(events.map(({ id }) => id)).size).toBe(3);
    for (const { time, metadata } of events) {
      expect(time).toBe('2026-03-01T12:30:00.000Z');
      expect(metadata.actor).toEqual({ kind: 'user', id: 'user_1' });
    }
  });
});

describe('when another command was faster', () => {
  it('the command is decided again on the new state', async () => {
    const log = await watchedLog();
    await ask(log, createSession());
    log.beforeAppend = once(() => ask(log.inner, stop));
    expect(await ask(log, extend)).toMatchObject({
      code: 'SESSION_NOT_ACTIVE',
      context: { status: 'stopped' },
    });
    expect(await readTypes(log)).not.toContain('session.extended');
  });

  it('a conflict on the ledger alone makes it decide again', async () => {
    const log = await watchedLog();
    log.beforeAppend = once(() => grant(log.inner, 1));
    expect(await ask(log, createSession())).toMatchObject({ isChanged: true });
    expect((await log.readLast<'ledger'>(ledgerRef))?.state).toMatchObject({
      creditsGranted: 601,
      creditsReserved: 120,
    });
  });

  it('the second read goes to the leader', async () => {
    const log = await watchedLog();
    await ask(log, createSession());
    log.beforeAppend = once(() => ask(log.inner, activate));
    log.reads.length = 0;
    await ask(log, extend);
    const [first, second] = [log.reads.slice(0, 2), log.reads.slice(2)];
    expect(first).toEqual(['session', 'ledger']);
    expect(second).toContain('session leader');
    expect(second).not.toContain('session');
  });

  it('on the ledger alone, the session is not read again', async () => {
    const log = await watchedLog();
    log.beforeAppend = once(() => grant(log.inner, 1));
    log.reads.length = 0;
    await ask(log, createSession({ fingerprint: 'of a request with a key' }));
    expect(log.reads).toEqual(['session', 'ledger', 'ledger leader']);
  });

  it('a rejected request without a key does not look for its new session in the archive', async () => {
    const log = await watchedLog();
    const purged: EventStore = {
      ...log,
      info: async () => ({ ...(await log.info()), firstSequence: 2 }),
    };
    const open = () => expect.fail('the archive was opened');
    const eventStore = { ...log, readLast: withArchive(purged, open).readLast };
    const request = (command: SessionCommand) =>
      handleSessionCommand(
        context(eventStore),
        { organizationId, id: 'ses_1' },
        command,
        newMetadata('test'),
        { concurrentSessions: 0 },
      );
    expect(await request(createSession())).toMatchObject({ code: 'SESSION_LIMIT_EXCEEDED' });
    const withKey = createSession({ fingerprint: 'of a request with a key' });
    await expect(request(withKey)).rejects.toThrow('the archive was opened');
  });

  it('one of two requests for the last slot is rejected', async () => {
    const log = await watchedLog();
    const limits = { concurrentSessions: 1 };
    const outcomes = await Promise.all([
      ask(log, createSession(), 'ses_1', limits),
      ask(log, createSession(), 'ses_2', limits),
    ]);
    expect(outcomes.filter((outcome) => 'code' in outcome)).toEqual([
      { code: 'SESSION_LIMIT_EXCEEDED', context: { limit: 1 } },
    ]);
    expect((await log.readLast<'ledger'>(ledgerRef))?.state?.slotsInUse).toBe(1);
  });

  it('in every attempt, the command fails as Unavailable', async () => {
    const log = await watchedLog();
    log.answer = { outcome: 'conflict' };
    await expect(ask(log, createSession())).rejects.toThrow(Unavailable);
    expect(log.appends.length).toBeGreaterThan(10);
  });
});

describe('a replica that lags behind', () => {
  it('causes no rejection: the leader is read first', async () => {
    const log = await watchedLog();
    await ask(log, createSession());
    log.replicaOf = () => null;
    expect(await ask(log, extend)).toMatchObject({ isChanged: true });
  });

  it('does not cause a report to be dropped', async () => {
    const log = await watchedLog();
    for (const command of [createSession(), activate]) await ask(log, command);
    const behind = await log.inner.readLast<'session'>(sessionRef);
    await ask(log, stop);
    log.replicaOf = (aggregate) => (aggregate.kind === 'session' ? behind : undefined);
    expect(await ask(log, confirm)).toMatchObject({ state: { status: 'stopped' } });
  });

  it('does not let a command append to an old state', async () => {
    const log = await watchedLog();
    await ask(log, createSession());
    const behind = await log.inner.readLast<'session'>(sessionRef);
    await ask(log, activate);
    log.replicaOf = (aggregate) => (aggregate.kind === 'session' ? behind : undefined);
    expect(await ask(log, stop)).toMatchObject({ state: { status: 'stopping' } });
  });
});

describe('a command whose answer was lost', () => {
  it('is not executed a second time', async () => {
    const log = await watchedLog();
    await ask(log, createSession());
    log.beforeAppend = once((changes) => log.inner.append(changes));
    const handled = await ask(log, extend);
    expect(handled).toMatchObject({ isChanged: false, state: { creditsReserved: 180 } });
    expect(await readTypes(log)).toEqual(['session.requested', 'session.extended']);
  });
});

describe('a state that another version of the fold wrote', () => {
  it('is not trusted: the history is folded', async () => {
    const log = await watchedLog();
    for (const command of [createSession(), activate]) await ask(log, command);
    const last = await log.inner.readLast<'session'>(sessionRef);
    log.replicaOf = () => ({ ...last, state: null }) as never;
    expect(await ask(log, stop)).toMatchObject({ state: { status: 'stopping' } });
  });
});

function ask(
  eventStore: EventStore,
  command: SessionCommand,
  id = 'ses_1',
  limits = { concurrentSessions: 5 },
) {
  return handleSessionCommand(
    context(eventStore),
    { organizationId, id },
    command,
    newCause(),
    limits,
  );
}

function typesOf(changes: readonly StreamAppend[]): string[] {
  return changes.flatMap(({ events }) => events.map(({ type }) => type));
}

async function readTypes(eventStore: EventStore): Promise<string[]> {
  return (await readAll(eventStore)).map(({ type }) => type);
}

async function readAll(eventStore: EventStore): Promise<RecordedOf<'session'>[]> {
  const events = [];
  for await (const event of eventStore.history<'session'>(sessionRef)) events.push(event);
  return events;
}
