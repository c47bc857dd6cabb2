import { expect, test } from 'vitest';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { closeWhenEnded, createSessionDirectory } from '#src/gateway/access/session-lookup.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { createMemoryEventStore } from '#src/event-store/event-store.memory.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { subscribeToSessions } from '#src/event-store/session-events.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
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
  const context = createCommandContext(createMemoryEventStore(), () => T0);
  await using tail = await subscribeToSessions(context.eventStore, (error) => {
    throw error;
  });
  const rotated: unknown[] = [];
  closeWhenEnded(tail, {
    closeSession: () => 0,
    closeRotated: (...session) => rotated.push(session),
  });
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
  const sessions = createSessionDirectory(context);
  await tell(createSession());
  await tell({ type: 'ActivateSession', workload: browser(), now: T0 });
  expect(await sessions.find('acme', 'a')).toMatchObject({ status: 'active', accessEpoch: 0 });
  expect(rotated).toEqual([]);

  for (let epoch = 1; epoch <= 2; epoch += 1) {
    await tell({ type: 'RotateAccess', now: T0 });
    expect(await sessions.find('acme', 'a')).toMatchObject({ accessEpoch: epoch });
  }
  await eventually(() => rotated.length >= 2, 'older connections are closed twice');
  expect(rotated).toEqual([
    ['acme', 'a', 1],
    ['acme', 'a', 2],
  ]);
});
