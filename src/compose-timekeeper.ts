import { createJetStreamLeases } from './log/leases.jetstream.ts';
import { createJetStreamTimers } from './log/timers.jetstream.ts';
import { startTimekeeper } from './timekeeper/timekeeper.ts';
import type { Ground } from './compose-ground.ts';

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
