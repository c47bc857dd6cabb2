import { createJetStreamLeases } from '#src/messaging/jetstream/jetstream-leases.ts';
import { createJetStreamTimers } from '#src/messaging/jetstream/jetstream-timers.ts';
import { startTimekeeper } from '#src/timekeeper/timekeeper.ts';
import type { Ground } from './infrastructure.ts';

export async function composeTimekeeper(ground: Ground): Promise<AsyncDisposable> {
  const { connection, config } = ground;
  return startTimekeeper({
    ...ground,
    timers: createJetStreamTimers(connection),
    leases: await createJetStreamLeases(connection),
    queue: config.queue,
    onLogReconnect: (listener) => connection.onReconnect(listener),
  });
}
