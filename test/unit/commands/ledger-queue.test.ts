import { describe, expect, it } from 'vitest';
import type { RecordedOf } from '#events/events.ts';
import { isRejected, Unavailable } from '#src/errors.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import { browser, createSession, MINUTE, T0 } from '#test/support/examples.ts';
import { ask, inLine, ledgerOf, sessionsOf } from '#test/support/ledger-queue.fixture.ts';
import {
  desk,
  grant,
  ledgerRef,
  newCause,
  once,
  watchedLog,
  type Watched,
} from '#test/support/watched-event-store.ts';

const { organizationId } = sessionRef;
const stop: SessionCommand = { type: 'StopSession', reason: 'user', now: T0 + MINUTE };
const activate: SessionCommand = { type: 'ActivateSession', workload: browser(), now: T0 };
const MANY = 40;

describe('creates of one organization in one process', () => {
  it('that come while one is being written go together in the next append', async () => {
    const log = await watchedLog({ credits: 100_000 });
    const outcomes = await createMany(log, MANY);
    expect(outcomes.map((outcome) => isRejected(outcome))).toEqual(Array(MANY).fill(false));
    expect(log.appends.length).toBeLessThan(MANY / 4);
    const sequences = outcomes.map((outcome) => ('sequence' in outcome ? outcome.sequence : 0));
    for (const [index, outcome] of outcomes.entries()) {
      const last = await log.last<'session'>({ ...sessionRef, id: `ses_${index}` });
      expect(outcome).toEqual({ isChanged: true, sequence: last?.sequence, state: last?.state });
    }
    expect(new Set(sequences).size).toBe(MANY);
    expect(await ledgerOf(log)).toMatchObject({
      slotsInUse: MANY,
      creditsReserved: MANY * 120,
      creditsAvailable: 100_000 - MANY * 120,
    });
  });

  it('have each line of the ledger under its own command', async () => {
    const log = await watchedLog({ credits: 100_000 });
    await createMany(log, MANY);
    const commands = new Map<string, string>();
    for (let index = 0; index < MANY; index += 1) {
      const id = `ses_${index}`;
      const last = await log.last<'session'>({ ...sessionRef, id });
      commands.set(id, last?.cause.commandId ?? '');
    }
    const lines = (await historyOf(log)).filter(({ type }) => type === 'ledger.slot-reserved');
    expect(lines).toHaveLength(MANY);
    for (const { cause, data } of lines)
      expect(cause.commandId).toBe(commands.get((data as { sessionId: string }).sessionId));
  });

  it('are accepted up to the last slot and refused beyond it', async () => {
    const log = await watchedLog({ credits: 100_000 });
    const outcomes = await createMany(log, MANY, { concurrentSessions: 7 });
    const refused = outcomes.filter(isRejected);
    expect(refused).toHaveLength(MANY - 7);
    for (const { rejected, context } of refused)
      expect([rejected, context]).toEqual(['SESSION_LIMIT_EXCEEDED', { limit: 7 }]);
    expect(await ledgerOf(log)).toMatchObject({ slotsInUse: 7 });
  });

  it('spend every credit and no more', async () => {
    const log = await watchedLog({ credits: 5 * 120 + 119 });
    const refused = (await createMany(log, MANY)).filter(isRejected);
    expect(refused).toHaveLength(MANY - 5);
    for (const one of refused)
      expect(one).toMatchObject({
        rejected: 'INSUFFICIENT_CREDITS',
        context: { required: 120, available: 119 },
      });
    expect(await ledgerOf(log)).toMatchObject({ creditsAvailable: 119, creditsReserved: 600 });
  });

  it('are refused on what the leader says after they came, not on what is known from before', async () => {
    const log = await watchedLog({ credits: 240 });
    const line = inLine(log);
    const limits = { concurrentSessions: 1 };
    // Another process frees the slot while the first is being written.
    log.beforeAppend = async (changes) => {
      const isFirst = log.answer === null && log.appends.length === 1;
      log.answer = isFirst ? await log.inner.append(changes) : null;
      if (isFirst) await rival(log, 'ses_1', stop);
    };
    const outcomes = await Promise.all(
      ['ses_1', 'ses_2'].map((id) => ask(line, id, createSession(), limits)),
    );
    expect(outcomes.map((outcome) => isRejected(outcome))).toEqual([false, false]);
    expect(await ledgerOf(log)).toMatchObject({ slotsInUse: 1 });
  });

  it('are not refused on the word of a replica that lags behind', async () => {
    const log = await watchedLog({ credits: 100_000 });
    const line = inLine(log);
    await ask(line, 'ses_1', createSession());
    const behind = await log.last<'ledger'>(ledgerRef);
    await ask(line, 'ses_1', stop);
    log.replicaOf = ({ kind }) => (kind === 'ledger' ? behind : undefined);
    const limits = { concurrentSessions: 1 };
    expect(isRejected(await ask(line, 'ses_2', createSession(), limits))).toBe(false);
  });
});

describe('a group whose append meets a conflict', () => {
  it('is written on the ledger as a rival left it', async () => {
    const log = await watchedLog({ credits: 100_000 });
    let rivals = 3;
    log.beforeAppend = async () => {
      if ((rivals -= 1) >= 0) await grant(log.inner, 1);
    };
    const outcomes = await createMany(log, MANY);
    expect(outcomes.some((outcome) => isRejected(outcome))).toBe(false);
    expect(await ledgerOf(log)).toMatchObject({ slotsInUse: MANY, creditsGranted: 100_003 });
  });

  it('is decided anew where one of its sessions has moved on', async () => {
    const log = await watchedLog({ credits: 100_000 });
    const line = inLine(log);
    await ask(line, 'ses_old', createSession());
    log.beforeAppend = once(() => rival(log, 'ses_old', activate));
    const outcomes = await Promise.all([
      ask(line, 'ses_old', stop),
      ask(line, 'ses_new', createSession()),
    ]);
    // Decided as of a session without a browser it had ended at once.
    expect(outcomes).toMatchObject([
      { state: { status: 'stopping' } },
      { state: { status: 'creating' } },
    ]);
    expect(await ledgerOf(log)).toMatchObject({ slotsInUse: 2 });
  });

  it('is told to come back when that goes on and on', async () => {
    const log = await watchedLog({ credits: 100_000 });
    log.beforeAppend = () => grant(log.inner, 1);
    await expect(ask(inLine(log), 'ses_1', createSession())).rejects.toThrow(Unavailable);
    expect(log.appends.length).toBeGreaterThan(10);
    expect(await ledgerOf(log)).toMatchObject({ slotsInUse: 0 });
  });
});

describe('commands of one session in line', () => {
  const extend: SessionCommand = {
    type: 'ExtendSession',
    byMs: 60 * MINUTE,
    maxLifetimeMs: 72 * 60 * MINUTE,
    duration: '1h',
  };

  it('are decided one after the other', async () => {
    const log = await watchedLog({ credits: 100_000 });
    const line = inLine(log);
    await ask(line, 'ses_1', createSession());
    await Promise.all(Array.from({ length: 8 }, () => ask(line, 'ses_1', extend)));
    const last = await log.last<'session'>({ ...sessionRef, id: 'ses_1' });
    expect(last?.state.creditsReserved).toBe(120 + 8 * 60);
    expect(await ledgerOf(log)).toMatchObject({ creditsReserved: 120 + 8 * 60 });
  });

  it('decide anew when their turn comes, and hold up nobody who waits with them', async () => {
    const log = await watchedLog({ credits: 100_000 });
    const line = inLine(log);
    await ask(line, 'ses_1', createSession());
    log.appends.length = 0;
    await Promise.all([
      ask(line, 'ses_1', extend),
      ask(line, 'ses_1', extend),
      ask(line, 'ses_2', createSession()),
    ]);
    // None of the appends was in vain.
    const events = log.appends.flatMap((changes) => sessionsOf(changes));
    expect(events).toHaveLength(3);
    expect(await ledgerOf(log)).toMatchObject({ creditsReserved: 120 + 2 * 60 + 120 });
  });
});

/** Another process. */
function rival(log: Watched, id: string, command: SessionCommand) {
  return handleSession(desk(log.inner), { organizationId, id }, command, newCause());
}

function createMany(log: Watched, count: number, limits = { concurrentSessions: 1_000 }) {
  const line = inLine(log);
  return Promise.all(
    Array.from({ length: count }, (_, index) => ask(line, `ses_${index}`, createSession(), limits)),
  );
}

async function historyOf(log: EventLog): Promise<RecordedOf<'ledger'>[]> {
  const events: RecordedOf<'ledger'>[] = [];
  for await (const event of log.history<'ledger'>(ledgerRef)) events.push(event);
  return events;
}
