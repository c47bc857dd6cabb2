import { Unavailable } from '#src/kernel/errors.ts';
import type { ProjectionSource } from './projector.ts';

/** At most one failure per 5 s is reported: every projection asks the event store each second. */
const REPORT_EVERY_MS = 5_000;

/**
 * The same source, for projectors that retry for ever: an unexpected answer (a starting server that
 * does not know its stream yet, a permission that is missing for a moment) is no bug of a
 * projection and becomes `Unavailable`, which projectors retry. RangeError and TypeError, the bugs
 * of a caller, are thrown unchanged. Subscriptions pass through: those of a process do not fail
 * (src/kernel/event-store/shared-subscription.ts).
 */
export function retryableSource(
  eventStore: ProjectionSource,
  onFailure: (error: unknown) => void,
): ProjectionSource {
  let reportedAt = -Infinity;

  function asUnavailable(error: unknown): never {
    const isBug = error instanceof RangeError || error instanceof TypeError;
    if (isBug || error instanceof Unavailable) throw error;
    if (performance.now() - reportedAt >= REPORT_EVERY_MS) {
      reportedAt = performance.now();
      onFailure(error);
    }
    throw new Unavailable('event-log', error);
  }
  return {
    subscribe: (options) => eventStore.subscribe(options),
    history: (aggregate) => eventStore.history(aggregate),
    read: (options) => eventStore.read(options),
    lastSequence: () => eventStore.lastSequence().catch(asUnavailable),
    info: () => eventStore.info().catch(asUnavailable),
  };
}
