import { expect, it } from 'vitest';
import { STATE_UNKNOWN } from '#events/codec.ts';
import type { RecordedOf } from '#events/events.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import { createRecent } from '#src/event-store/state-cache.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import { browser, createSession, MINUTE, T0 } from '#test/support/examples.ts';
import { desk, ledgerRef, newCause, watchedLog } from '#test/support/watched-event-store.ts';

const activate: SessionCommand = { type: 'ActivateSession', workload: browser(), now: T0 };
const stop: SessionCommand = { type: 'StopSession', reason: 'user', now: T0 + MINUTE };

/** A process with its memory, on a log that others write to as well. */
async function aProcess() {
  const log = await watchedLog();
  const recent = createRecent();
  const remembering = { ...desk(log), recent };
  const ask = (command: SessionCommand, by = remembering) =>
    handleSession(by, sessionRef, command, newCause(), { concurrentSessions: 5 });
  const elsewhere = (command: SessionCommand) =>
    handleSession(desk(log.inner), sessionRef, command, newCause(), { concurrentSessions: 5 });
  return { log, recent, ask, elsewhere };
}

it('what a process has written itself it need not read to decide on', async () => {
  const { log, ask } = await aProcess();
  await ask(createSession());
  log.reads.length = 0;
  await ask(activate);
  await ask(stop);
  expect(log.reads).toEqual([]);
});

it('a new id is not looked up where it is known to have no past', async () => {
  const { log, recent, ask } = await aProcess();
  recent.remember(sessionRef, { state: null, sequence: 0 });
  await ask(createSession());
  expect(log.reads).toEqual(['ledger']);
});

it('where another process was faster the leader is read, and decided on again', async () => {
  const { log, ask, elsewhere } = await aProcess();
  await ask(createSession());
  await elsewhere(activate);
  log.reads.length = 0;
  expect(await ask(stop)).toMatchObject({ state: { status: 'stopping' }, isChanged: true });
  // Stopped without a browser it would have moved the ledger, too: that is looked at first.
  expect(log.reads).toEqual(['ledger leader', 'session leader']);
});

it('nothing is refused on what is only remembered', async () => {
  const { ask, elsewhere, log } = await aProcess();
  await ask(createSession());
  await ask(stop);
  log.reads.length = 0;
  await ask(activate);
  expect(log.reads).toEqual(['session leader']);
  expect(await elsewhere(stop)).toMatchObject({ isChanged: false });
});

it('an older event does not take the place of a newer one', async () => {
  const { recent, log, ask } = await aProcess();
  await ask(createSession());
  const requested = (await log.inner.last<'session'>(sessionRef)) as RecordedOf<'session'>;
  await ask(activate);
  recent.saw(requested);
  expect(recent.of<'session'>(sessionRef)?.state?.status).toBe('active');
});

it('a state of another version is not remembered', async () => {
  const { recent, log, ask } = await aProcess();
  await ask(createSession());
  const last = (await log.inner.last<'session'>(sessionRef)) as RecordedOf<'session'>;
  recent.forget(sessionRef);
  recent.saw({ ...last, state: STATE_UNKNOWN } as unknown as RecordedOf<'session'>);
  expect(recent.of(sessionRef)).toBeUndefined();
});

it('only so many are remembered', () => {
  const recent = createRecent();
  const loaded = { state: null, sequence: 1 };
  recent.remember(ledgerRef, loaded);
  for (let at = 0; at < 2_000; at += 1)
    recent.remember({ ...ledgerRef, organizationId: `org_${at}` }, loaded);
  expect(recent.of(ledgerRef)).toBeUndefined();
  expect(recent.of({ ...ledgerRef, organizationId: 'org_1999' })).toEqual(loaded);
});
