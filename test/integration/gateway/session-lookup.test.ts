import { describe, expect, test } from 'vitest';
import { createLinkKeys } from '#src/browsers/link/browser-link.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import {
  closeWhenEnded,
  createSessionDirectory,
  HEARD_WITHIN_MS,
} from '#src/roles/gateway/access/session-lookup.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { EventStore, ReadLastOptions } from '#src/kernel/event-store/event-store.ts';
import { createStateCache } from '#src/kernel/event-store/state-cache.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { subscribeToSessions } from '#src/kernel/event-store/session-events.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { browser, createSession, T0 } from '#test/support/examples.ts';
import { eventually } from '#test/support/service/service.ts';

test('when a session ends, its connections are closed and no others', async () => {
  const context = createCommandContext(createMemoryEventStore(), () => T0);
  await using tail = await subscribeToSessions(context.eventStore, (error) => {
    throw error;
  });
  const closed: unknown[] = [];
  const LIMITS = { concurrentSessions: 5 };
  const unwatch = closeWhenEnded(tail, {
    closeSession: (...session) => {
      closed.push(session);
      return 0;
    },
    closeRotated: () => 0,
    closeGrant: () => 0,
    hold: () => undefined,
  });
  const acme = { id: 'acme', name: 'Acme', tier: 'max', credits: 10_000 } as const;
  await registerOrganization(context, acme, newMetadata('test'));
  const tell = (id: string, command: SessionCommand) =>
    handleSessionCommand(
      context,
      { organizationId: 'acme', id },
      command,
      newMetadata('test'),
      LIMITS,
    );

  for (const id of ['a', 'b', 'c']) await tell(id, createSession());
  await tell('a', { type: 'StopSession', reason: 'user', now: T0 });
  await tell('b', {
    type: 'FailSession',
    reason: 'launch_failed',
    detail: '',
    exitCode: 1,
    now: T0,
  });
  await eventually(() => closed.length >= 2, 'two sessions are cut');
  unwatch();
  await tell('c', { type: 'StopSession', reason: 'user', now: T0 });
  expect([...new Map(closed.map((one) => [String(one), one])).values()]).toEqual([
    ['acme', 'a', 'user'],
    ['acme', 'b', 'launch_failed'],
  ]);
});

test('when access is rotated, connections with older addresses are closed', async () => {
  const { directory, eventStore, tell } = await anActiveSession();
  await using tail = await subscribeToSessions(eventStore, (error) => {
    throw error;
  });
  const rotated: unknown[] = [];
  closeWhenEnded(tail, {
    closeSession: () => 0,
    closeRotated: (...session) => rotated.push(session),
    closeGrant: () => 0,
    hold: () => undefined,
  });
  const find = () => directory.find('acme', 'a', { fromLeader: true });
  expect(await find()).toMatchObject({ status: 'active', accessEpoch: 0 });
  expect(rotated).toEqual([]);

  for (let epoch = 1; epoch <= 2; epoch += 1) {
    await tell({ type: 'RotateAccess', now: T0 });
    expect(await find()).toMatchObject({ accessEpoch: epoch });
  }
  await eventually(() => rotated.length >= 2, 'older connections are closed twice');
  expect(rotated).toEqual([
    ['acme', 'a', 1],
    ['acme', 'a', 2],
  ]);
});

describe('the session of a ticket', () => {
  test('is believed from memory while events are received, and asked for otherwise', async () => {
    const { directory, reception, reads, tell } = await anActiveSession();
    await directory.find('acme', 'a');
    expect(reads.splice(0)).toEqual([{ fromLeader: true }]);
    // Another process stops it, and this one does not receive it.
    await tell({ type: 'StopSession', reason: 'user', now: T0 });

    reception.silenceMs = HEARD_WITHIN_MS;
    expect(await directory.find('acme', 'a')).toMatchObject({ status: 'active' });
    expect(reads).toEqual([]);
    const ended = { status: 'ended', reason: 'user' };
    expect(await directory.find('acme', 'a', { fromLeader: true })).toMatchObject(ended);
  });

  test.each([
    ['silent for too long', { silenceMs: HEARD_WITHIN_MS + 1, isConnected: true }],
    ['disconnected', { silenceMs: 0, isConnected: false }],
  ])('is asked of the leader where the event store is %s', async (_name, state) => {
    const { directory, reception, reads, tell } = await anActiveSession();
    await directory.find('acme', 'a');
    await tell({ type: 'StopSession', reason: 'user', now: T0 });
    Object.assign(reception, state);
    expect(await directory.find('acme', 'a')).toMatchObject({ status: 'ended', reason: 'user' });
    expect(reads).toEqual([{ fromLeader: true }, { fromLeader: true }]);
  });

  test('is unknown, and not what is remembered, if the event store does not answer', async () => {
    const { directory, reception } = await anActiveSession();
    await directory.find('acme', 'a');
    Object.assign(reception, { isConnected: false, isAway: true });
    await expect(directory.find('acme', 'a')).rejects.toThrow(Unavailable);
  });

  test('is read once if it has ended: that does not change', async () => {
    const { directory, reception, reads, tell } = await anActiveSession();
    const crash = { reason: 'browser_crashed', detail: '', exitCode: 1 } as const;
    await tell({ type: 'FailSession', ...crash, now: T0 });
    reception.isConnected = false;
    for (let time = 1; time <= 3; time += 1)
      expect(await directory.find('acme', 'a')).toMatchObject({ reason: 'browser_crashed' });
    expect(reads).toHaveLength(1);
  });

  test('has no screen if it is headless', async () => {
    const { directory } = await anActiveSession(true);
    expect(await directory.find('acme', 'a')).toMatchObject({ status: 'active', vnc: null });
  });
});

/** An active session, and a gateway's directory beside the process that changes it. */
async function anActiveSession(headless = false) {
  const eventStore = createMemoryEventStore();
  const context = createCommandContext(eventStore, () => T0);
  const acme = { id: 'acme', name: 'Acme', tier: 'max', credits: 10_000 } as const;
  await registerOrganization(context, acme, newMetadata('test'));
  const tell = (command: SessionCommand) =>
    handleSessionCommand(
      context,
      { organizationId: 'acme', id: 'a' },
      command,
      newMetadata('test'),
      { concurrentSessions: 5 },
    );
  const options = { viewport: null, locale: null, timezone: null };
  await tell(createSession(headless ? { browser: { ...options, headless } } : {}));
  await tell({ type: 'AssignSession', workloadId: 'wl_1', serverId: 'srv_1' });
  await tell({ type: 'ActivateSession', workload: browser(), now: T0 });

  const reception = { silenceMs: 0, isConnected: true, isAway: false };
  const reads: (ReadLastOptions | undefined)[] = [];
  const seen: EventStore = {
    ...eventStore,
    readLast(aggregate, readOptions) {
      reads.push(readOptions);
      if (reception.isAway) throw new Unavailable('event-log');
      return eventStore.readLast(aggregate, readOptions);
    },
  };
  const directory = createSessionDirectory(
    createCommandContext(seen, () => T0, createStateCache()),
    {
      linkKeys: createLinkKeys(Buffer.alloc(32, 7)),
      reception: {
        isConnected: () => reception.isConnected,
        eventsSilenceMs: () => reception.silenceMs,
      },
    },
  );
  return { directory, eventStore, reception, reads, tell };
}
