import type { EventMetadata } from '#events/envelope.ts';
import { newId } from '#src/kernel/ids.ts';

/**
 * Metadata of a command that a part of the service issues without an event as its cause; `id` is
 * `<role>/<what>`.
 */
export function newMetadata(id: string): EventMetadata {
  return {
    actor: { kind: 'service', id },
    commandId: newId('cmd'),
    correlationId: newId('cor'),
    causationId: null,
  };
}

/**
 * Metadata of a command that a part of the service issues because of an event: it has the event as
 * its cause, and the event's correlation id.
 */
export function metadataFrom(
  event: { id: string; metadata: EventMetadata },
  id: string,
): EventMetadata {
  const { correlationId, traceparent } = event.metadata;
  return {
    ...newMetadata(id),
    correlationId,
    causationId: event.id,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}
