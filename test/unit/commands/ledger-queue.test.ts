import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { isRejection, Unavailable } from '#src/kernel/errors.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { browser, MINUTE, T0 } from '#test/support/examples.ts';
import { openLedgerQueue } from '#test/support/ledger-queue.fixture.ts';

/** Credits of one created session: two hours are reserved. */
const CREDITS_EACH = 120;
const MANY = 40;
const stop: SessionCommand = { type: 'StopSession', reason: 'user', now: T0 + MINUTE };
const activate: SessionCommand = { type: 'ActivateSession', workload: browser(), now: T0 };
const extendByAnHour: SessionCommand = {
  type: 'ExtendSession',
  byMs: 60 * MINUTE,
  maxLifetimeMs: 72 * 60 * MINUTE,
  duration: '1h',
  now: T0,
};

describe('concurrent creates of one organization', () => {
  it('share the next append if they arrive during an append', async () => {
    const queue = await openLedgerQueue();
    expect((await queue.createMany(MANY)).filter(isRejection)).toEqual([]);
    expect(queue.appends().length).toBeLessThan(MANY / 4);
    expect(await queue.ledger()).toMatchObject({
      slotsInUse: MANY,
      creditsReserved: MANY * CREDITS_EACH,
      creditsAvailable: 100_000 - MANY * CREDITS_EACH,
    });
  });

  it('are each answered with the position and the state of their own session', async () => {
    const queue = await openLedgerQueue();
    const results = await queue.createMany(MANY);
    for (const [index, result] of results.entries()) {
      const last = await queue.lastOfSession(`ses_${index}`);
      expect(result).toEqual({
        isChanged: true,
        sequence: last?.sequence,
        state: last?.state,
        eventId: last?.id,
      });
    }
    const sequences = results.map((result) => ('sequence' in result ? result.sequence : 0));
    expect(new Set(sequences).size).toBe(MANY);
  });

  it('are each recorded in the ledger with their own command id', async () => {
    const queue = await openLedgerQueue();
    await queue.createMany(MANY);
    const reserved = (await queue.ledgerEvents()).filter(
      ({ type }) => type === 'ledger.slot-reserved',
    );
    expect(reserved).toHaveLength(MANY);
    for (const { metadata, data } of reserved) {
      const session = await queue.lastOfSession((data as { sessionId: string }).sessionId);
      expect(metadata.commandId).toBe(session?.metadata.commandId);
    }
  });

  it('are accepted up to the limit of sessions and refused beyond it', async () => {
    const queue = await openLedgerQueue();
    const results = await queue.createMany(MANY, { concurrentSessions: 7 });
    const refused = results.filter(isRejection);
    expect(refused).toHaveLength(MANY - 7);
    for (const { code, context } of refused)
      expect([code, context]).toEqual(['SESSION_LIMIT_EXCEEDED', { limit: 7 }]);
    expect(await queue.ledger()).toMatchObject({ slotsInUse: 7 });
  });

  it('are accepted as long as credits suffice', async () => {
    const queue = await openLedgerQueue({ credits: 5 * CREDITS_EACH + 119 });
    const refused = (await queue.createMany(MANY)).filter(isRejection);
    expect(refused).toHaveLength(MANY - 5);
    for (const rejection of refused)
      expect(rejection).toMatchObject({
        code: 'INSUFFICIENT_CREDITS',
        context: { required: CREDITS_EACH, available: 119 },
      });
    expect(await queue.ledger()).toMatchObject({
      creditsAvailable: 119,
      creditsReserved: 5 * CREDITS_EACH,
    });
  });

  it('are refused only by a read of the ledger that is newer than the request', async () => {
    const queue = await openLedgerQueue({ credits: 2 * CREDITS_EACH });
    // The only slot is free again before the first append is answered.
    queue.afterAppend(1, () => queue.otherProcess.send('ses_1', stop));
    const limits = { concurrentSessions: 1 };
    const results = await Promise.all(['ses_1', 'ses_2'].map((id) => queue.create(id, limits)));
    expect(results.filter(isRejection)).toEqual([]);
    expect(await queue.ledger()).toMatchObject({ slotsInUse: 1 });
  });

  it('are not refused because a replica lags behind', async () => {
    const queue = await openLedgerQueue();
    await queue.create('ses_1');
    const slotInUse = await queue.lastOfLedger();
    await queue.send('ses_1', stop);
    queue.replicasAnswer(slotInUse);
    expect(isRejection(await queue.create('ses_2', { concurrentSessions: 1 }))).toBe(false);
  });
});

describe('a create that is announced', () => {
  const nextTurn = () => new Promise((resolve) => void setImmediate(resolve));
  /** What is announced may come late: a machine may be busy for longer than is waited for it. */
  function withoutTimeLimit(): void {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
  }

  it('shares the append of those that come before it', async () => {
    withoutTimeLimit();
    const queue = await openLedgerQueue();
    const [first, second] = [queue.announce(), queue.announce()];
    const created = first.create('ses_1');
    await nextTurn();
    await Promise.all([created, second.create('ses_2')]);
    expect(queue.appends()).toEqual([['ses_1', 'ses_2']]);
  });

  it('holds up no append once it is given up', async () => {
    withoutTimeLimit();
    const queue = await openLedgerQueue();
    const never = queue.announce();
    const created = queue.announce().create('ses_1');
    await nextTurn();
    expect(queue.appends()).toEqual([]);
    never.giveUp();
    never.giveUp();
    await created;
    expect(queue.appends()).toEqual([['ses_1']]);
  });

  it('holds up appends for a moment only if it never comes', async () => {
    const queue = await openLedgerQueue();
    queue.announce();
    await queue.announce().create('ses_1');
    await queue.create('ses_2');
    expect(queue.appends()).toEqual([['ses_1'], ['ses_2']]);
  });

  it('holds up nothing after it came', async () => {
    const queue = await openLedgerQueue();
    await queue.announce().create('ses_1');
    await queue.send('ses_1', extendByAnHour);
    expect(queue.appends()).toEqual([['ses_1'], ['ses_1']]);
  });
});

describe('an append of several commands that conflicts', () => {
  it('is repeated with the ledger that the other process has changed', async () => {
    const queue = await openLedgerQueue();
    for (const append of [1, 2, 3])
      queue.beforeAppend(append, () => queue.otherProcess.grantCredits(1));
    expect((await queue.createMany(MANY)).filter(isRejection)).toEqual([]);
    expect(await queue.ledger()).toMatchObject({ slotsInUse: MANY, creditsGranted: 100_003 });
  });

  it('does not have the commands decided again if the ledger alone has changed', async () => {
    const queue = await openLedgerQueue();
    queue.beforeAppend(1, () => queue.otherProcess.grantCredits(1));
    await queue.createMany(MANY);
    // A command that decides again reads its session from the leader.
    expect(queue.reads()).toContain('ledger leader');
    expect(queue.reads()).not.toContain('session leader');
  });

  it('has a command decided again whose session the other process has changed', async () => {
    const queue = await openLedgerQueue();
    await queue.create('ses_old');
    queue.beforeAppend(2, () => queue.otherProcess.send('ses_old', activate));
    const results = await Promise.all([queue.send('ses_old', stop), queue.create('ses_new')]);
    // Without a browser the old session would have ended at once: `stopped`, not `stopping`.
    expect(results).toMatchObject([
      { state: { status: 'stopping' } },
      { state: { status: 'creating' } },
    ]);
    expect(await queue.ledger()).toMatchObject({ slotsInUse: 2 });
  });

  it('ends as Unavailable after many conflicts', async () => {
    const queue = await openLedgerQueue();
    queue.beforeEachAppend(() => queue.otherProcess.grantCredits(1));
    await expect(queue.create('ses_1')).rejects.toThrow(Unavailable);
    expect(queue.appends().length).toBeGreaterThan(10);
    expect(await queue.ledger()).toMatchObject({ slotsInUse: 0 });
  });
});

describe('a command that arrives while the last append of a queue is answered', () => {
  it.each(Array.from({ length: 40 }, (_, turns) => turns))(
    'is served, %i turns after the answer',
    async (turns) => {
      const queue = await openLedgerQueue();
      const late = Promise.withResolvers<unknown>();
      queue.afterAppend(1, () => {
        late.resolve(microtasks(turns).then(() => queue.create('ses_2')));
      });
      await queue.create('ses_1');
      const lost = new Promise((resolve) => setTimeout(resolve, 30_000, 'never answered').unref());
      expect(await Promise.race([late.promise, lost])).toMatchObject({ isChanged: true });
    },
  );
});

describe('concurrent commands of one session', () => {
  it('are decided one after the other', async () => {
    const queue = await openLedgerQueue();
    await queue.create('ses_1');
    await Promise.all(Array.from({ length: 8 }, () => queue.send('ses_1', extendByAnHour)));
    const creditsReserved = CREDITS_EACH + 8 * 60;
    expect((await queue.lastOfSession('ses_1'))?.state).toMatchObject({ creditsReserved });
    expect(await queue.ledger()).toMatchObject({ creditsReserved });
  });

  it('cost no append in vain and do not delay other sessions', async () => {
    const queue = await openLedgerQueue();
    await queue.create('ses_1');
    await Promise.all([
      queue.send('ses_1', extendByAnHour),
      queue.send('ses_1', extendByAnHour),
      queue.create('ses_2'),
    ]);
    const [, ...afterTheCreate] = queue.appends();
    expect(afterTheCreate.flat().toSorted()).toEqual(['ses_1', 'ses_1', 'ses_2']);
    expect(await queue.ledger()).toMatchObject({ creditsReserved: 2 * CREDITS_EACH + 2 * 60 });
  });
});

async function microtasks(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await Promise.resolve();
}
