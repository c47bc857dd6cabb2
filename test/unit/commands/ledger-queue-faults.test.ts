import { describe, expect, it } from 'vitest';
import { isRejection, Unavailable } from '#src/kernel/errors.ts';
import { createSession, MINUTE, T0 } from '#test/support/examples.ts';
import { openLedgerQueue } from '#test/support/ledger-queue.fixture.ts';
import { nextTurn } from '#src/kernel/async/sleep.ts';

describe('a ledger queue', () => {
  it('accepts the other commands of an append if one of them cannot be stored', async () => {
    const queue = await openLedgerQueue();
    const results = await Promise.allSettled([
      queue.create('ses_1'),
      queue.create('ses_2'),
      queue.send('ses_3', createSession({ name: 'x'.repeat(129) })),
      queue.create('ses_4'),
    ]);
    const statuses = results.map(({ status }) => status);
    expect(statuses).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(await queue.ledger()).toMatchObject({ slotsInUse: 3 });
  });

  it('decides again if another process did the same first', async () => {
    const queue = await openLedgerQueue();
    await queue.create('ses_1');
    const stop = { type: 'StopSession', reason: 'user', now: T0 + MINUTE } as const;
    // Both processes release the slot: on the ledger alone, the second has none to release.
    queue.beforeAppend(2, () => queue.otherProcess.send('ses_1', stop));
    expect(await queue.send('ses_1', stop)).toMatchObject({ isChanged: false });
    expect(await queue.ledger()).toMatchObject({ slotsInUse: 0, creditsReserved: 0 });
  });

  it('fails the commands that wait when the event store fails, and serves the next', async () => {
    const queue = await openLedgerQueue();
    queue.beforeAppend(1, () => Promise.reject(new Unavailable('event-log')));
    const results = await Promise.allSettled(
      ['ses_1', 'ses_2', 'ses_3'].map((id) => queue.create(id)),
    );
    expect(results.map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
    expect(await queue.create('ses_4')).toMatchObject({ isChanged: true });
  });

  it('repeats each command of an append by itself if its answer is lost', async () => {
    // Only an append of one command can be recognized as a duplicate.
    const queue = await openLedgerQueue();
    queue.loseAnswer(2, 'not stored');
    const others: Promise<unknown>[] = [];
    queue.beforeEachAppend(async (append) => {
      if (append < 5) others.push(queue.create(`ses_other_${append}`));
      // Time for more commands to arrive: they would share the next append.
      await nextTurn();
    });
    await queue.createMany(9);
    await Promise.all(others);

    const [, doubtful = [], ...later] = queue.appends();
    expect(doubtful).toHaveLength(9);
    const repeated = later.filter((ids) => ids.some((id) => doubtful.includes(id)));
    expect(repeated.toSorted()).toEqual(doubtful.map((id) => [id]).toSorted());
    expect(await queue.ledger()).toMatchObject({ slotsInUse: 13 });
  });

  it('does not refuse a create whose append is stored late for the slot that it takes itself', async () => {
    const queue = await openLedgerQueue();
    queue.storeLate();
    const created = await queue.create('ses_1', { concurrentSessions: 1 });
    expect(created).toMatchObject({ state: { status: 'creating' } });
    expect(await queue.ledger()).toMatchObject({ slotsInUse: 1 });
  });

  it('does nothing twice if the answer to a stored append is lost', async () => {
    const queue = await openLedgerQueue();
    // The first create is alone in append 1; the others share append 2.
    queue.loseAnswer(2, 'stored');
    expect((await queue.createMany(5)).filter(isRejection)).toEqual([]);
    expect(queue.appends()).toHaveLength(2);
    expect(await queue.ledger()).toMatchObject({ slotsInUse: 5 });
  });
});
