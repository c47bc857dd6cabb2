import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { createMemoryLeases } from '#src/messaging/leases.memory.ts';
import { createMemoryTimers } from '#src/messaging/timers.memory.ts';
import { createMemoryWorkQueues } from '#src/messaging/work-queue.memory.ts';
import { watchServers } from '#src/timekeeper/lost-servers.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { eventually } from '#test/support/service/service.ts';

const join = { type: 'Join', ip: '10.0.0.1', browsers: 'docker', poolMax: 1 } as const;

test('a server that announced a restart counts as lost after a minute, not when its lease ends', async () => {
  let nowMs = Date.now();
  const now = () => nowMs;
  await using fleet = await openFleet({ now });
  const stop = new AbortController();
  await fleet.sendServerCommand('srv_back', join);
  await fleet.sendServerCommand('srv_back', { type: 'Restart' });
  const watching = watchServers(
    {
      context: createCommandContext(fleet.context.eventStore, now),
      openWorkQueue: createMemoryWorkQueues(fleet.context.eventStore),
      timers: createMemoryTimers({ now }),
      // No server holds a lease.
      leases: createMemoryLeases({ now }),
      views: fleet.views,
      queue: { afterMs: 1_000, timeoutMs: 60_000 },
      onLogReconnect: () => () => undefined,
      log: pino({ level: 'silent' }),
    },
    stop.signal,
  );
  const statusOf = async (id: string) => (await fleet.serverOf(id))?.status;
  const isLost = (id: string) =>
    eventually(async () => (await statusOf(id)) === 'lost', `${id} is lost`, 60_000);
  // The second server joins after the first is lost: when it is lost too, both have been checked.
  for (const id of ['srv_first', 'srv_second']) {
    await fleet.sendServerCommand(id, join);
    // Longer than a lease.
    nowMs += 15_000;
    await isLost(id);
  }
  expect(await statusOf('srv_back')).toBe('live');
  nowMs += 31_000;
  await isLost('srv_back');
  stop.abort();
  await watching;
});
