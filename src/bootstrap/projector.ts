import { everyProjection } from '#projections/all-projections.ts';
import { runProjections, type Projecting } from '#projections/runner/run-projections.ts';
import type { Ground } from './infrastructure.ts';
import { createJetStreamParked } from '#src/messaging/jetstream/jetstream-dead-letters.ts';

export function startProjector({ desk, stores, connection, log }: Ground): Projecting {
  const projecting = runProjections({
    projections: everyProjection,
    log: desk.log,
    views: stores,
    parked: createJetStreamParked(connection),
    onParked: (event, reason) => log.error({ ...event, reason }, 'event parked'),
    onLogFailure: (error) => log.error({ err: error }, 'the log is not read; trying again'),
    onRemoved: (store) => log.info({ store }, 'views that nobody reads any more removed'),
  });
  // A projection that ends by itself is a bug; the service does not go on with a read model that
  // stands still.
  projecting.running.catch((error: unknown) => {
    log.error({ err: error }, 'a projection failed');
    process.exitCode = 1;
    process.kill(process.pid, 'SIGTERM');
  });
  return projecting;
}
