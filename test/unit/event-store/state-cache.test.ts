import { expect, it } from 'vitest';
import type { RecordedOf } from '#events/events.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { createStateCache } from '#src/kernel/event-store/state-cache.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import { browser, createSession, MINUTE, T0 } from '#test/support/examples.ts';
import { context, ledgerRef, newCause, watchedLog } from '#test/support/watched-event-store.ts';

const activate: SessionCommand = { type: 'ActivateSession', workload: browser(), now: T0 };
const stop: SessionCommand = { type: 'StopSession', reason: 'user', now: T0 + MINUTE };

/** A process with its state cache, on an event store that other processes write to as well. */
async function aProcess() {
  const log = await watchedLog();
  const stateCache = createStateCache();
  const remembering = context(log, stateCache);
  const ask = (command: SessionCommand, by = remembering) =>
    handleSessionCommand(by, sessionRef, command, newCause(), { concurrentSessions: 5 });
  const elsewhere = (command: SessionCommand) =>
    handleSessionCommand(context(log.inner), sessionRef, command, newCause(), {
      concurrentSessions: 5,
    });
  return { log, stateCache, ask, elsewhere };
}

it('a command decides on a state that its process has appended, without a read', async () => {
  const { log, ask } = await aProcess();
  await ask(createSession());
  log.reads.length = 0;
  await ask(activate);
  await ask(stop);
  expect(log.reads).toEqual([]);
});

it('a new id is not read if it is known to have no events', async () => {
  const { log, stateCache, ask } = await aProcess();
  stateCache.set(sessionRef, { state: null, sequence: 0 });
  await ask(createSession());
  expect(log.reads).toEqual(['ledger']);
});

it('if another process was faster, the leader is read and the command decides again', async () => {
  const { log, ask, elsewhere } = await aProcess();
  await ask(createSession());
  await elsewhere(activate);
  log.reads.length = 0;
  expect(await ask(stop)).toMatchObject({ state: { status: 'stopping' }, isChanged: true });
  // A session stopped without a browser would have changed the ledger, too, so the ledger is read
  // first.
  expect(log.reads).toEqual(['ledger leader', 'session leader']);
});

it('no command is rejected on a cached state alone', async () => {
  const { ask, elsewhere, log } = await aProcess();
  await ask(createSession());
  await ask(stop);
  log.reads.length = 0;
  await ask(activate);
  expect(log.reads).toEqual(['session leader']);
  expect(await elsewhere(stop)).toMatchObject({ isChanged: false });
});

it('an older event does not replace a newer one', async () => {
  const { stateCache, log, ask } = await aProcess();
  await ask(createSession());
  const requested = (await log.inner.readLast<'session'>(sessionRef)) as RecordedOf<'session'>;
  await ask(activate);
  stateCache.observe(requested);
  expect(stateCache.get<'session'>(sessionRef)?.state?.status).toBe('active');
});

it('a state of another version is not cached', async () => {
  const { stateCache, log, ask } = await aProcess();
  await ask(createSession());
  const last = (await log.inner.readLast<'session'>(sessionRef)) as RecordedOf<'session'>;
  stateCache.delete(sessionRef);
  stateCache.observe({ ...last, state: null });
  expect(stateCache.get(sessionRef)).toBeUndefined();
});

it('the number of cached states is limited', () => {
  const stateCache = createStateCache();
  const loaded = { state: null, sequence: 1 };
  stateCache.set(ledgerRef, loaded);
  for (let at = 0; at < 2_000; at += 1)
    stateCache.set({ ...ledgerRef, organizationId: `org_${at}` }, loaded);
  expect(stateCache.get(ledgerRef)).toBeUndefined();
  expect(stateCache.get({ ...ledgerRef, organizationId: 'org_1999' })).toEqual(loaded);
});
