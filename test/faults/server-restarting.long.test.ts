import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createMemoryMcpSessions } from '#src/kernel/messaging/mcp-sessions.memory.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { LEASE_MS } from '#src/kernel/messaging/leases.ts';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { createMemoryTimers } from '#src/kernel/messaging/timers.memory.ts';
import { createMemoryWorkQueues } from '#src/kernel/messaging/work-queue.memory.ts';
import { watchServers } from '#src/roles/timekeeper/lost-servers.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { eventually } from '#test/support/service/service.ts';

const join = { type: 'Join', ip: '10.0.0.1', browsers: 'docker', poolMax: 1 } as const;

/** Watches the servers of a fleet, none of which holds a lease, by a clock that tests set. */
async function watched(lostAfterMs: number) {
  let nowMs = Date.now();
  const now = () => nowMs;
  await using stack = new AsyncDisposableStack();
  const fleet = stack.use(await openFleet({ now }));
  const stop = new AbortController();
  const leases = createMemoryLeases({ now });
  let checks = 0;
  const watching = watchServers(
    {
      context: createCommandContext(fleet.context.eventStore, now),
      openWorkQueue: createMemoryWorkQueues(fleet.context.eventStore),
      timers: createMemoryTimers({ now }),
      leases: {
        ...leases,
        held() {
          checks += 1;
          return leases.held();
        },
      },
      views: fleet.views,
      lostAfterMs,
      mcp: { sessions: createMemoryMcpSessions({ now }), graceMs: 60_000, silenceMs: 60_000 },
      queue: { afterMs: 1_000, timeoutMs: 60_000 },
      onLogReconnect: () => () => undefined,
      log: pino({ level: 'silent' }),
    },
    stop.signal,
  );
  stack.defer(async () => {
    stop.abort();
    await watching;
  });
  const statusOf = async (id: string) => (await fleet.serverOf(id))?.status;
  const opened = stack.move();
  return {
    fleet,
    statusOf,
    /** Resolves once so many checks have begun and ended from now on. */
    async checked(count: number) {
      const before = checks;
      await eventually(() => checks > before + count, 'the leases are checked', 60_000);
    },
    pass: (ms: number) => void (nowMs += ms),
    isLost: (id: string) =>
      eventually(async () => (await statusOf(id)) === 'lost', `${id} is lost`, 60_000),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

test('a server that announced a restart counts as lost after a minute, not when its lease ends', async () => {
  await using servers = await watched(LEASE_MS);
  const { fleet, isLost, statusOf, pass } = servers;
  await fleet.sendServerCommand('srv_back', join);
  await fleet.sendServerCommand('srv_back', { type: 'Restart' });
  // The second server joins after the first is lost: when it is lost too, both have been checked.
  for (const id of ['srv_first', 'srv_second']) {
    await fleet.sendServerCommand(id, join);
    // Longer than a lease.
    pass(15_000);
    await isLost(id);
  }
  expect(await statusOf('srv_back')).toBe('live');
  pass(31_000);
  await isLost('srv_back');
});

test('any server may be away for SERVER_LOST_AFTER', async () => {
  await using servers = await watched(600_000);
  const { fleet, isLost, statusOf, pass } = servers;
  await fleet.sendServerCommand('srv_away', join);
  await fleet.sendServerCommand('srv_restarting', join);
  await fleet.sendServerCommand('srv_restarting', { type: 'Restart' });
  await servers.checked(2);
  pass(500_000);
  await servers.checked(2);
  expect(await statusOf('srv_away')).toBe('live');
  expect(await statusOf('srv_restarting')).toBe('live');
  pass(101_000);
  await isLost('srv_away');
  await isLost('srv_restarting');
});
