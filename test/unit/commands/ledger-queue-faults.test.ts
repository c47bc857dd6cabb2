import { describe, expect, it } from 'vitest';
import { isRejected, Unavailable } from '#src/errors.ts';
import type { Appended, Change } from '#src/event-store/event-store.ts';
import { createSession, MINUTE, T0 } from '#test/support/examples.ts';
import { ask, inLine, ledgerOf, sessionsOf } from '#test/support/ledger-queue.fixture.ts';
import { once, watchedLog } from '#test/support/watched-event-store.ts';

describe('a fault in line', () => {
  it('of one command is not the others: they are accepted', async () => {
    const log = await watchedLog({ credits: 100_000 });
    const line = inLine(log);
    const poison = createSession({ name: 'x'.repeat(129) });
    const outcomes = await Promise.allSettled([
      ask(line, 'ses_1', createSession()),
      ask(line, 'ses_2', createSession()),
      ask(line, 'ses_3', poison),
      ask(line, 'ses_4', createSession()),
    ]);
    const statuses = outcomes.map(({ status }) => status);
    expect(statuses).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(await ledgerOf(log)).toMatchObject({ slotsInUse: 3 });
  });

  it('is none where another process was faster with the same: it is decided again', async () => {
    const log = await watchedLog();
    const line = inLine(log);
    await ask(line, 'ses_1', createSession());
    const stop = { type: 'StopSession', reason: 'user', now: T0 + MINUTE } as const;
    // Its session has ended and its slot is back: by the ledger alone there is none to give back.
    log.beforeAppend = once(() => ask(inLine(log.inner), 'ses_1', stop));
    expect(await ask(line, 'ses_1', stop)).toMatchObject({ isChanged: false });
    expect(await ledgerOf(log)).toMatchObject({ slotsInUse: 0, creditsReserved: 0 });
  });

  it('of the log is told to all who wait, and to nobody after that', async () => {
    const log = await watchedLog({ credits: 100_000 });
    const line = inLine(log);
    log.beforeAppend = once(() => Promise.reject(new Unavailable('event-log')));
    const outcomes = await Promise.allSettled(
      ['ses_1', 'ses_2', 'ses_3'].map((id) => ask(line, id, createSession())),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
    expect(await ask(line, 'ses_4', createSession())).toMatchObject({ isChanged: true });
  });

  it('that loses an answer has each go on by itself, for an append is known again by one', async () => {
    const log = await watchedLog({ credits: 100_000 });
    const line = inLine(log);
    let appends = 0;
    const others: Promise<unknown>[] = [];
    log.beforeAppend = async () => {
      appends += 1;
      if (appends < 5) others.push(ask(line, `ses_other_${appends}`, createSession()));
      // What comes meanwhile would go together in the next.
      await new Promise((resolve) => setTimeout(resolve, 5));
      log.answer = appends === 2 ? { outcome: 'conflict', isDoubtful: true } : null;
    };
    await Promise.all(
      Array.from({ length: 9 }, (_, index) => ask(line, `ses_${index}`, createSession())),
    );
    await Promise.all(others);
    const doubtful = new Set(sessionsOf(log.appends[1] ?? []).map(idOf));
    expect(doubtful.size).toBe(9);
    const again = log.appends
      .slice(2)
      .map((changes) => sessionsOf(changes).map(idOf))
      .filter((ids) => ids.some((id) => doubtful.has(id)));
    expect(again.toSorted()).toEqual([...doubtful].map((id) => [id]).toSorted());
    expect(await ledgerOf(log)).toMatchObject({ slotsInUse: 13 });
  });

  it('that loses an answer to what was stored has nothing done twice', async () => {
    const log = await watchedLog({ credits: 100_000 });
    const line = inLine(log);
    // The first goes out alone; the next group is stored, and the log's word on it is lost.
    let appends = 0;
    log.beforeAppend = async (changes) => {
      log.answer = null;
      appends += 1;
      if (appends !== 2) return;
      await log.inner.append(changes);
      log.answer = { outcome: 'conflict', isDoubtful: true } satisfies Appended;
    };
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, (_, index) => ask(line, `ses_${index}`, createSession())),
    );
    expect(outcomes.some((outcome) => isRejected(outcome))).toBe(false);
    expect(log.appends).toHaveLength(2);
    expect(await ledgerOf(log)).toMatchObject({ slotsInUse: 5 });
  });
});

function idOf({ aggregate }: Change): string {
  return 'id' in aggregate ? aggregate.id : '';
}
