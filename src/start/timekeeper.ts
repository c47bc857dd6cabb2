import { createJetStreamMcpSessions } from '#src/kernel/messaging/jetstream/jetstream-mcp-sessions.ts';
import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import { createJetStreamTimers } from '#src/kernel/messaging/jetstream/jetstream-timers.ts';
import { createJetStreamWorkQueues } from '#src/kernel/messaging/jetstream/jetstream-work-queue.ts';
import { startTimekeeper } from '#src/roles/timekeeper/timekeeper.ts';
import type { Infrastructure } from './infrastructure.ts';

export async function composeTimekeeper(infrastructure: Infrastructure): Promise<AsyncDisposable> {
  const { connection, config, readers } = infrastructure;
  return startTimekeeper({
    ...infrastructure,
    openWorkQueue: createJetStreamWorkQueues(connection, { onOpened: readers.add }),
    timers: createJetStreamTimers(connection, { onOpened: readers.add }),
    leases: await createJetStreamLeases(connection),
    lostAfterMs: config.serverLostAfterMs,
    mcp: { ...config.mcp, sessions: await createJetStreamMcpSessions(connection) },
    queue: config.queue,
    onLogReconnect: (listener) => connection.onReconnect(listener),
  });
}
