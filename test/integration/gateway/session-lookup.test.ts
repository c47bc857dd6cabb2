import { expect, test } from 'vitest';
import { closeWhenEnded } from '#src/gateway/access/session-lookup.ts';
import { causeBy } from '#src/commands/metadata.ts';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { startTail } from '#src/event-store/session-events.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
import { createSession, T0 } from '#test/support/examples.ts';
import { eventually } from '#test/support/service/service.ts';

test('a session’s connections are cut when the log says that it ends, and no other’s', async () => {
  const desk = { log: createMemoryEventLog(), now: () => T0 };
  await using tail = await startTail(desk.log, (error) => {
    throw error;
  });
  const closed: unknown[] = [];
  const LIMITS = { concurrentSessions: 5 };
  const unwatch = closeWhenEnded(tail, {
    closeSession: (...session) => {
      closed.push(session);
      return 0;
    },
  });
  const acme = { id: 'acme', name: 'Acme', tier: 'max', credits: 10_000 } as const;
  await registerOrganization(desk, acme, causeBy('test'));
  const tell = (id: string, command: SessionCommand) =>
    handleSession(desk, { organizationId: 'acme', id }, command, causeBy('test'), LIMITS);

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
