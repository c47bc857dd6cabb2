import { allProjections } from '#projections/all-projections.ts';
import { startProjections, type ProjectionRunner } from '#projections/runner/run-projections.ts';
import type { Infrastructure } from './infrastructure.ts';
import { createJetStreamDeadLetters } from '#src/kernel/messaging/jetstream/jetstream-dead-letters.ts';

export function startProjector({
  context,
  rawViews,
  connection,
  log,
}: Infrastructure): ProjectionRunner {
  const projecting = startProjections({
    projections: allProjections,
    eventStore: context.eventStore,
    views: rawViews,
    deadLetters: createJetStreamDeadLetters(connection),
    onDeadLetter: (event, reason) =>
      log.error({ ...event, reason }, 'an event became a dead letter'),
    onUnknown: (projection, reason) =>
      log.warn(
        { projection, reason },
        'projection waits for a projector of a newer version, which can read the next event',
      ),
    onSourceFailure: (error) =>
      log.error({ err: error }, 'reading the event store failed; retrying'),
    onRemoved: (store) => log.info({ store }, 'removed views of an outdated projection'),
  });
  // A projection that ends by itself is a bug. End the process: its read model would go stale.
  projecting.running.catch((error: unknown) => {
    log.error({ err: error }, 'projection failed; ending the process');
    process.exitCode = 1;
    process.kill(process.pid, 'SIGTERM');
  });
  return projecting;
}
