import { pino } from 'pino';
import { expect, it } from 'vitest';
import type { Views } from '#projections/store/views.ts';
import { createMemoryMcpSessions } from '#src/kernel/messaging/mcp-sessions.memory.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { watchSession } from '#src/commands/session-outcome.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { loadState, withState } from '#src/kernel/event-store/load-state.ts';
import { subscribeToSessions } from '#src/kernel/event-store/session-events.ts';
import { closeWhenEnded } from '#src/roles/gateway/access/session-lookup.ts';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { createMemoryTimers } from '#src/kernel/messaging/timers.memory.ts';
import { createMemoryWorkQueues } from '#src/kernel/messaging/work-queue.memory.ts';
import { startTimekeeper } from '#src/roles/timekeeper/timekeeper.ts';
import { browser, createSession, MINUTE, T0 } from '#test/support/examples.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import { withForeignItems, withForeignStates } from '#test/support/stores/foreign-states.ts';
import { watchedLog } from '#test/support/watched-event-store.ts';

const activate: SessionCommand = { type: 'ActivateSession', workload: browser(), now: T0 };
const stop: SessionCommand = { type: 'StopSession', reason: 'user', now: T0 + MINUTE };

/** Readers of events that were written with another state version. */

async function open() {
  const { inner } = await watchedLog();
  const eventStore = withForeignStates(inner);
  const { organizationId, id } = sessionRef;
  const limits = { concurrentSessions: 5 };
  const ask = async (command: SessionCommand) => {
    const context = createCommandContext(inner, () => T0);
    const metadata = newMetadata('test');
    await handleSessionCommand(context, { organizationId, id }, command, metadata, limits);
  };
  return { inner, eventStore, ask };
}

function rethrow(error: unknown): never {
  throw error;
}

it('loading a state folds the history, up to the requested event', async () => {
  const { inner, eventStore, ask } = await open();
  for (const command of [createSession(), activate, stop]) await ask(command);
  expect(await loadState(eventStore, sessionRef)).toEqual(await loadState(inner, sessionRef));
  const history = await Array.fromAsync(inner.history<'session'>(sessionRef));
  for (const { sequence, state } of history)
    expect(await loadState(eventStore, sessionRef, { upTo: sequence })).toEqual({
      state,
      sequence,
    });
  for await (const event of eventStore.history<'session'>(sessionRef))
    expect(await withState<'session'>(eventStore, event)).toEqual(history.shift());
});

it('a create waits for its browser: an event without a state does not settle it', async () => {
  const { eventStore, ask } = await open();
  await using sessionEvents = await subscribeToSessions(eventStore, rethrow);
  using outcome = watchSession(sessionEvents, sessionRef.id);
  await ask(createSession());
  const { state, sequence } = await loadState<'session'>(eventStore, sessionRef);
  if (state === null) throw new Error('the session is missing');
  const settled = outcome.settled({ state, sequence }, 60_000);
  await ask(activate);
  expect((await settled).state.status).toBe('active');
});

it('connections of a session are closed when it ends, and not before', async () => {
  const { eventStore, ask } = await open();
  await using sessionEvents = await subscribeToSessions(eventStore, rethrow);
  const closed: string[] = [];
  closeWhenEnded(sessionEvents, {
    closeSession: (organizationId, sessionId, reason) =>
      closed.push(`${organizationId} ${sessionId} ${reason}`),
    closeRotated: () => 0,
    closeGrant: () => 0,
    hold: () => undefined,
  });
  for (const command of [createSession(), activate]) await ask(command);
  await expect.poll(() => sessionEvents.position()).toBeGreaterThan(2);
  expect(closed).toEqual([]);
  await ask(stop);
  await expect.poll(() => closed).toContain(`${sessionRef.organizationId} ses_1 user`);
});

it('timers are scheduled for the session’s times', async () => {
  const { inner, eventStore, ask } = await open();
  let now = T0;
  const timers = createMemoryTimers({ now: () => now });
  const scheduled: string[] = [];
  await using _ = await startTimekeeper({
    context: createCommandContext(eventStore, () => now),
    openWorkQueue: withForeignItems(createMemoryWorkQueues(inner)),
    timers: {
      ...timers,
      async schedule(timer, at) {
        scheduled.push(`${timer.kind} ${at.getTime() - T0}`);
        await timers.schedule(timer, at);
      },
    },
    leases: createMemoryLeases({ now: () => now }),
    views: { isReachable: () => false } as Views,
    lostAfterMs: 10_000,
    mcp: {
      sessions: createMemoryMcpSessions({ now: () => now }),
      graceMs: 60_000,
      silenceMs: 60_000,
    },
    queue: { afterMs: 30_000, timeoutMs: 90_000 },
    onLogReconnect: () => () => undefined,
    log: pino({ level: 'silent' }),
  });
  now = T0 + 1_000;
  await ask(createSession());
  await expect
    .poll(() => scheduled)
    .toEqual(['expiry 7200000', 'queue-after 30000', 'queue-timeout 90000']);
});
