import type { Cause } from '#events/envelope.ts';
import { newId } from '#src/ids.ts';

/** A part of the service as the cause of what it decides of itself; `id` is `<role>/<what>`. */
export function causeBy(id: string): Cause {
  return {
    actor: { kind: 'service', id },
    commandId: newId('cmd'),
    correlationId: newId('cor'),
    causationId: null,
  };
}

/**
 * A part of the service that acts on an event: the chain goes on, under the event's correlation.
 */
export function causeAfter(event: { id: string; cause: Cause }, id: string): Cause {
  const { correlationId, traceparent } = event.cause;
  return {
    ...causeBy(id),
    correlationId,
    causationId: event.id,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}
